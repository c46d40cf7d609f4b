// Memory that a decoder keeps from one image to the next.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace lade::media {

// Bytes that are reused by one image after another. For one thread.
class scratch {
 public:
  // Returns room for `bytes` bytes with undefined contents. Earlier contents are lost.
  std::uint8_t* reserve(std::size_t bytes) {
    if (bytes > size_) {
      memory_.reset();
      size_ = 0;
      memory_ = std::make_unique_for_overwrite<std::uint8_t[]>(bytes);
      size_ = bytes;
    }
    return memory_.get();
  }

  std::uint8_t* data() noexcept { return memory_.get(); }

 private:
  std::unique_ptr<std::uint8_t[]> memory_;
  std::size_t size_ = 0;
};

}  // namespace lade::media
