// Memory that a decoder reuses from one image to the next.

#pragma once

#include <lade/buffer.hpp>
#include <lade/buffer_pool.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace lade::media {

// Bytes that successive images reuse. Not thread-safe. The thread keeps small memory. Large memory
// is allocated from the run and is freed with the image: memory of malloc would return to the
// thread's arena, which keeps it.
class scratch {
 public:
  // Returns `bytes` bytes with undefined contents. Earlier contents are lost.
  std::uint8_t* reserve(std::size_t bytes) {
    constexpr auto most_kept = std::size_t{1} << 20;
    if (bytes > most_kept) {
      large_ = {};
      large_ = allocate_now(bytes);
      return reinterpret_cast<std::uint8_t*>(large_.data());
    }
    if (bytes > size_) {
      small_.reset();
      size_ = 0;
      small_ = std::make_unique_for_overwrite<std::uint8_t[]>(bytes);
      size_ = bytes;
    }
    return small_.get();
  }

  // Frees large memory. Call when the image is finished.
  void end_image() noexcept { large_ = {}; }

 private:
  std::unique_ptr<std::uint8_t[]> small_;
  std::size_t size_ = 0;
  buffer large_;
};

}  // namespace lade::media
