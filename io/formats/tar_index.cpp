#include <lade/error.hpp>
#include <lade/io/formats/tar_index.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "decoder.hpp"
#include "tar_walk.hpp"

namespace lade::io {

using detail::tar_block_bytes;
using detail::tar_walk;

tar_index::tar_index(std::uint64_t archive_bytes, std::string identity,
                     std::vector<tar_entry> entries)
    : archive_bytes_(archive_bytes), identity_(std::move(identity)), entries_(std::move(entries)) {
  for (const auto& each : entries_)
    if (each.offset() > archive_bytes || each.bytes() > archive_bytes - each.offset())
      throw error(errc::invalid_data, "index an archive",
                  fmt::format("{} is behind its end at {}", each.name(), archive_bytes));
}

}  // namespace lade::io

namespace lade::detail {

// Serves several small reads that are close to each other from one larger read.
class header_window {
 public:
  explicit header_window(std::shared_ptr<const byte_reader> from)
      : from_(std::move(from)), size_(from_->size()) {}

  const std::string& name() const noexcept { return from_->name(); }
  std::uint64_t size() const noexcept { return size_; }

  // Throws error(invalid_data) naming `part_name` if the archive ends before the end of the range.
  task<buffer> read(std::uint64_t offset, std::uint64_t bytes, std::string_view part_name) {
    require(offset, bytes, part_name);
    bool inside =
        offset >= at_ && offset - at_ <= window_.size() && bytes <= window_.size() - (offset - at_);
    if (!inside) {
      constexpr std::uint64_t least = 4096;
      auto needed = std::min(std::max(bytes, least), size_ - offset);
      window_ = co_await from_->read_at(offset, static_cast<std::size_t>(needed));
      at_ = offset;
    }
    co_return window_.slice(static_cast<std::size_t>(offset - at_),
                            static_cast<std::size_t>(bytes));
  }

  void require(std::uint64_t offset, std::uint64_t bytes, std::string_view part_name) const {
    if (offset <= size_ && bytes <= size_ - offset) return;
    throw error(errc::invalid_data, fmt::format("read {} of {}", part_name, name()),
                fmt::format("it ends at byte {}, {} bytes are wanted from byte {} on", size_, bytes,
                            offset));
  }

 private:
  std::shared_ptr<const byte_reader> from_;
  std::uint64_t size_;
  buffer window_;
  std::uint64_t at_ = 0;
};

}  // namespace lade::detail

namespace lade::io {

static task<> refuse_to_index_compressed(detail::header_window& archive) {
  if (archive.size() < detail::magic_bytes) co_return;
  auto begin = co_await archive.read(0, detail::magic_bytes, "the first bytes");
  if (detail::make_decoder(begin.text(), archive.name(), {}))
    throw error(errc::unsupported, "index " + archive.name(),
                "it is compressed, so that its members are not reached by index");
}

// Reads the header or extension at `offset`, and advances `offset` past it. Throws the errors of
// header_window::read.
static task<tar_walk::step> index_step(detail::header_window& archive, tar_walk& walk,
                                       tar_walk::step step, std::uint64_t& offset,
                                       std::vector<tar_entry>& entries) {
  if (step == tar_walk::step::header) {
    if (offset == archive.size()) {
      walk.end(offset);
      co_return tar_walk::step::over;
    }
    auto block = co_await archive.read(offset, tar_block_bytes, "a header");
    offset += tar_block_bytes;
    co_return walk.add_block(block.text(), offset - tar_block_bytes);
  }
  auto bytes = walk.padded_bytes();
  auto at = std::exchange(offset, offset + bytes);
  if (step == tar_walk::step::extension) {
    auto data = co_await archive.read(at, bytes, "an extended header");
    co_return walk.add_extension(data.text());
  }
  bool is_member = step == tar_walk::step::member;
  archive.require(at, bytes, is_member ? walk.entry().name : "a member");
  if (is_member) entries.emplace_back(std::move(walk.entry().name), at, walk.entry().bytes);
  co_return tar_walk::step::header;
}

task<tar_index> index_tar(std::shared_ptr<const byte_reader> archive, std::string identity,
                          tar_options options) {
  detail::header_window window(std::move(archive));
  co_await refuse_to_index_compressed(window);
  tar_walk walk(window.name(), options);
  std::vector<tar_entry> entries;
  std::uint64_t offset = 0;
  auto step = tar_walk::step::header;
  while (step != tar_walk::step::over) {
    try {
      step = co_await index_step(window, walk, step, offset, entries);
    } catch (const error& failure) {
      walk.end(failure);
      step = tar_walk::step::over;
    }
  }
  co_return tar_index(window.size(), std::move(identity), std::move(entries));
}

}  // namespace lade::io
