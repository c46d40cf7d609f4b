// Owned bytes that many may share: file contents, members of archives, memory of tensors.

#pragma once

#include <lade/device.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace lade {

class memory_resource;

// A range of bytes and a share in whatever owns it. Copies refer to the same bytes; the last one
// gives them back. The bytes may be those of a device, which the CPU cannot read: see where().
// Writing is the business of whoever made the buffer, before others see it; after that any thread
// may read.
class buffer {
 public:
  static constexpr std::size_t alignment = 64;

  buffer() = default;

  // Fresh, uninitialised bytes, aligned to `alignment`.
  explicit buffer(std::size_t bytes);

  // The same, allocated from a resource: memory_resource.hpp.
  buffer(std::size_t bytes, memory_resource& from);

  // Bytes of the device `where` that `owner` keeps alive.
  buffer(std::shared_ptr<const void> owner, std::span<std::byte> bytes, device where = {}) noexcept
      : owner_(std::move(owner)), bytes_(bytes), where_(where) {}

  std::byte* data() const noexcept { return bytes_.data(); }
  std::size_t size() const noexcept { return bytes_.size(); }
  bool empty() const noexcept { return bytes_.empty(); }
  std::span<std::byte> bytes() const noexcept { return bytes_; }
  device where() const noexcept { return where_; }
  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(data()), size()}; }

  // The `bytes` bytes from `offset`, sharing the ownership. Throws std::out_of_range when they
  // are not all inside.
  buffer slice(std::size_t offset, std::size_t bytes) const;

 private:
  std::shared_ptr<const void> owner_;
  std::span<std::byte> bytes_;
  device where_;
};

}  // namespace lade
