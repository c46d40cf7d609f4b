#include "byte_input.hpp"

#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include <algorithm>
#include <utility>

namespace lade::media {

std::size_t memory_input::read(std::span<std::byte> into, std::uint64_t offset) {
  if (offset >= content_.size()) return 0;
  const auto rest = content_.bytes().subspan(static_cast<std::size_t>(offset));
  const auto count = std::min(into.size(), rest.size());
  std::copy_n(rest.begin(), count, into.begin());
  bytes_read_ += count;
  return count;
}

static std::uint64_t big_endian(const buffer& file, std::uint64_t at, int bytes) noexcept {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i)
    value = value << 8 | std::to_integer<std::uint64_t>(file.data()[at + std::uint64_t(i)]);
  return value;
}

// A box begins with its size, of 32 bits, and its type. A size of 1 stands for one of 64 bits
// behind the type, 0 for the rest of the file (ISO/IEC 14496-12, 4.2).
std::unique_ptr<headers_input> headers_input::open(const buffer& file) {
  std::unique_ptr<headers_input> input(new headers_input(file));
  const std::uint64_t end = file.size();
  for (std::uint64_t at = 0; at < end;) {
    if (end - at < 8) return nullptr;
    std::uint64_t header = 8;
    auto size = big_endian(file, at, 4);
    if (size == 1) {
      header = 16;
      if (end - at < header) return nullptr;
      size = big_endian(file, at + 8, 8);
    } else if (size == 0) {
      size = end - at;
    }
    if (size < header || size > end - at) return nullptr;
    if (file.text().substr(static_cast<std::size_t>(at + 4), 4) == "mdat")
      input->media_.push_back({at + header, at + size});
    at += size;
  }
  if (input->media_.empty()) return nullptr;
  return input;
}

std::size_t headers_input::read(std::span<std::byte> into, std::uint64_t offset) {
  if (offset >= file_.size()) return 0;
  const auto end = std::min<std::uint64_t>(offset + into.size(), file_.size());
  std::copy(file_.data() + offset, file_.data() + end, into.begin());
  const auto behind =
      std::upper_bound(media_.begin(), media_.end(), offset,
                       [](auto value, const auto& each) { return value < each.end; });
  for (auto each = behind; each != media_.end() && each->begin < end; ++each) {
    const auto first = std::max(offset, each->begin) - offset;
    const auto last = std::min(end, each->end) - offset;
    std::fill(into.begin() + static_cast<std::ptrdiff_t>(first),
              into.begin() + static_cast<std::ptrdiff_t>(last), std::byte{0});
  }
  return static_cast<std::size_t>(end - offset);
}

// Runs a task on a reactor of the context's runtime, with its stop, and blocks until it has
// finished.
template <class T>
static T block_on_reactor(const context& of, task<T> work) {
  auto& reactor = of.runtime->reactor();
  context surroundings = of;
  surroundings.home = &reactor;
  detail::promise_base root;
  root.context = &surroundings;
  detail::blocking_completion done;
  detail::start_job start(work, root, done);
  start.post(reactor);
  done.wait();
  return work.take();
}

std::size_t blocking_input::read(std::span<std::byte> into, std::uint64_t offset) {
  const auto count = block_on_reactor(*context_, from_->read_at(into, offset));
  bytes_read_ += count;
  return count;
}

}  // namespace lade::media
