// Memory that a decoder keeps from one image to the next.

#pragma once

#include <lade/buffer.hpp>
#include <lade/buffer_pool.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace lade::media {

// Bytes that are reused by one image after another. For one thread, which keeps what common images
// need. What large ones need is the run's: from malloc it would come back to the arena of the
// thread, which keeps it for itself.
class scratch {
 public:
  // Returns room for `bytes` bytes with undefined contents. Earlier contents are lost.
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

  // To be called when the image is done with.
  void end_image() noexcept { large_ = {}; }

 private:
  std::unique_ptr<std::uint8_t[]> small_;
  std::size_t size_ = 0;
  buffer large_;
};

}  // namespace lade::media
