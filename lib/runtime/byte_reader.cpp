#include <lade/buffer_pool.hpp>
#include <lade/byte_reader.hpp>
#include <lade/error.hpp>
#include <lade/support/require.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace lade {

static std::string range_text(std::uint64_t offset, std::uint64_t bytes) {
  return fmt::format("{} bytes at {}", bytes, offset);
}

// Whether the range is within the first `size` bytes.
static bool is_inside(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size) noexcept {
  return offset <= size && bytes <= size - offset;
}

void byte_reader::require_inside(std::uint64_t offset, std::uint64_t bytes) const {
  if (is_inside(offset, bytes, size())) return;
  throw error(errc::invalid_data, fmt::format("read {} of {}", range_text(offset, bytes), name()),
              fmt::format("it has {} bytes", size()));
}

task<buffer> byte_reader::read_at(std::uint64_t offset, std::size_t bytes) const {
  require_inside(offset, bytes);
  auto content = co_await allocate(bytes);
  auto done = co_await read_at(content.bytes(), offset);
  if (done != bytes)
    throw error(errc::invalid_data, fmt::format("read {} of {}", range_text(offset, bytes), name()),
                fmt::format("{} {}", done < bytes ? "it ended after" : "it returned", done));
  co_return content;
}

memory_reader::memory_reader(buffer content, std::string name)
    : content_(std::move(content)), name_(without_secrets(name)) {}

task<std::size_t> memory_reader::read_at(std::span<std::byte> into, std::uint64_t offset) const {
  if (offset >= content_.size()) co_return 0;
  auto rest = content_.bytes().subspan(offset);
  auto bytes = std::min(into.size(), rest.size());
  if (bytes > 0) std::memcpy(into.data(), rest.data(), bytes);
  co_return bytes;
}

task<buffer> memory_reader::read_at(std::uint64_t offset, std::size_t bytes) const {
  require_inside(offset, bytes);
  co_return content_.slice(offset, bytes);
}

part_reader::part_reader(std::shared_ptr<const byte_reader> whole, std::uint64_t offset,
                         std::uint64_t bytes, std::string name)
    : whole_(std::move(whole)), offset_(offset), bytes_(bytes), name_(std::move(name)) {
  if (!is_inside(offset, bytes, whole_->size()))
    throw error(errc::invalid_data, "open " + name_,
                fmt::format("{} of {}", range_text(offset, bytes), whole_->size()));
}

task<std::size_t> part_reader::read_at(std::span<std::byte> into, std::uint64_t offset) const {
  if (offset >= bytes_) co_return 0;
  auto bytes = std::min<std::uint64_t>(into.size(), bytes_ - offset);
  co_return co_await whole_->read_at(into.first(bytes), offset_ + offset);
}

task<buffer> part_reader::read_at(std::uint64_t offset, std::size_t bytes) const {
  require_inside(offset, bytes);
  co_return co_await whole_->read_at(offset_ + offset, bytes);
}

static async_generator<buffer> stream_chunks(std::shared_ptr<const byte_reader> from,
                                             stream_options options) {
  auto size = from->size();
  while (options.offset < size) {
    auto bytes = std::min<std::uint64_t>(options.chunk_bytes, size - options.offset);
    auto chunk = co_await from->read_at(options.offset, bytes);
    options.offset += bytes;
    co_yield chunk;
  }
}

async_generator<buffer> stream(std::shared_ptr<const byte_reader> from, stream_options options) {
  support::require_count("stream " + from->name(), "chunk_bytes", options.chunk_bytes,
                         {.least = 1});
  if (options.offset > from->size())
    throw error(errc::invalid_argument, "stream " + from->name(),
                fmt::format("offset {} is behind its end at {}", options.offset, from->size()));
  return stream_chunks(std::move(from), options);
}

stream_reader::stream_reader(async_generator<buffer> from, std::string name)
    : from_(std::move(from)), name_(without_secrets(name)) {}

stream_reader::stream_reader(std::shared_ptr<const byte_reader> from, std::size_t chunk_bytes)
    : reader_(std::move(from)),
      end_(reader_->size()),
      chunk_bytes_(reader_->is_in_memory() ? reader_->size() : chunk_bytes),
      name_(without_secrets(reader_->name())) {
  support::require_count("read " + name_, "chunk_bytes", chunk_bytes, {.least = 1});
}

// Reads the next chunk into ready_ if it is empty. Returns false at the end.
task<bool> stream_reader::fill() {
  if (reader_ && ready_.empty() && position_ < end_) {
    auto bytes = std::min<std::uint64_t>(chunk_bytes_, end_ - position_);
    ready_ = co_await reader_->read_at(position_, static_cast<std::size_t>(bytes));
  }
  while (from_ && ready_.empty()) {
    auto* next = co_await from_->next();
    if (!next) break;
    ready_ = std::move(*next);
  }
  co_return !ready_.empty();
}

// Takes `bytes` from the front of ready_, without a copy.
buffer stream_reader::take(std::size_t bytes) {
  auto taken = ready_.slice(0, bytes);
  ready_ = ready_.slice(bytes, ready_.size() - bytes);
  position_ += bytes;
  return taken;
}

error stream_reader::early_end(std::uint64_t missing, std::string_view what) const {
  return error(errc::invalid_data, fmt::format("read {} of {}", what, name_),
               fmt::format("it ends at byte {}, {} bytes too early", position_, missing));
}

// Ensures that ready_ is not empty. Throws if `missing` bytes of `what` are beyond the end.
task<> stream_reader::require(std::uint64_t missing, std::string_view what) {
  bool some = co_await fill();
  if (!some) throw early_end(missing, what);
}

// Throws if fewer than `bytes` are left of the reader. The position is then the end.
void stream_reader::require_left(std::uint64_t bytes, std::string_view what) {
  auto left = end_ - position_;
  if (bytes <= left) return;
  ready_ = buffer();
  position_ = end_;
  throw early_end(bytes - left, what);
}

task<bool> stream_reader::at_end() {
  bool some = co_await fill();
  co_return !some;
}

task<buffer> stream_reader::read_some(std::size_t most) {
  bool some = co_await fill();
  co_return some ? take(std::min(most, ready_.size())) : buffer();
}

task<buffer> stream_reader::read(std::size_t bytes, std::string_view what) {
  if (bytes == 0) co_return buffer();
  co_await require(bytes, what);
  if (bytes <= ready_.size()) co_return take(bytes);
  if (reader_) co_return co_await read_apart(bytes, what);

  constexpr std::size_t trusted_bytes = std::size_t{16} << 20;
  auto content = co_await allocate(std::min(bytes, std::max(2 * ready_.size(), trusted_bytes)));
  std::size_t done = 0;
  while (done < bytes) {
    co_await require(bytes - done, what);
    if (done == content.size()) {
      auto larger = co_await allocate(std::min(bytes, 2 * done));
      std::memcpy(larger.data(), content.data(), done);
      content = std::move(larger);
    }
    auto part = take(std::min(content.size() - done, ready_.size()));
    std::memcpy(content.data() + done, part.data(), part.size());
    done += part.size();
  }
  co_return content;
}

// Reads bytes that are not all in ready_ into separate memory.
task<buffer> stream_reader::read_apart(std::size_t bytes, std::string_view what) {
  require_left(bytes, what);
  auto content = co_await allocate(bytes);
  auto begin = take(ready_.size());
  std::memcpy(content.data(), begin.data(), begin.size());
  auto rest = content.bytes().subspan(begin.size());
  auto done = co_await reader_->read_at(rest, position_);
  position_ += done;
  if (done < rest.size()) throw early_end(rest.size() - done, what);
  co_return content;
}

task<> stream_reader::skip(std::uint64_t bytes, std::string_view what) {
  if (reader_ && bytes > ready_.size()) {
    require_left(bytes, what);
    ready_ = buffer();
    position_ += bytes;
    co_return;
  }
  while (bytes > 0) {
    co_await require(bytes, what);
    bytes -= take(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, ready_.size()))).size();
  }
}

}  // namespace lade
