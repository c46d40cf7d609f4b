// Shared bytes, such as contents of files, members of archives, or memory of tensors.

#pragma once

#include <lade/device.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace lade {

class memory_resource;

// A range of bytes with shared ownership. Copies refer to the same bytes; destroying the last one
// frees them. The bytes may be memory of a device, which the CPU cannot read: see where().
//
// Thread: the creator may write the bytes until it shares the buffer. After that any thread may
// read them, and nobody may write.
class buffer {
 public:
  static constexpr std::size_t alignment = 64;

  buffer() = default;

  // Allocates uninitialised bytes, aligned to `alignment`.
  explicit buffer(std::size_t bytes);

  // The same, allocated from a resource; see memory_resource.hpp.
  buffer(std::size_t bytes, memory_resource& from);

  // Bytes in the memory of the device `where`. The buffer shares the ownership of `owner`.
  buffer(std::shared_ptr<const void> owner, std::span<std::byte> bytes, device where = {}) noexcept
      : owner_(std::move(owner)), bytes_(bytes), where_(where) {}

  std::byte* data() const noexcept { return bytes_.data(); }
  std::size_t size() const noexcept { return bytes_.size(); }
  bool empty() const noexcept { return bytes_.empty(); }
  std::span<std::byte> bytes() const noexcept { return bytes_; }
  device where() const noexcept { return where_; }
  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(data()), size()}; }

  // A part of the buffer that shares its ownership: `bytes` bytes from `offset`. Throws
  // std::out_of_range if they exceed the buffer.
  buffer slice(std::size_t offset, std::size_t bytes) const;

 private:
  std::shared_ptr<const void> owner_;
  std::span<std::byte> bytes_;
  device where_;
};

}  // namespace lade
