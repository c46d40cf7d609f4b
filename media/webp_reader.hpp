// Reads WebP with libwebp.

#pragma once

#include "frame_reader.hpp"

#include <lade/support/byte_view.hpp>

namespace lade::media {

// Reads lossy and lossless images, and the first image of an animation at its position on the
// canvas.
class webp_reader final : public frame_reader {
 public:
  static bool recognises(support::byte_view file) noexcept {
    return file.begins("RIFF") && file.from(8).begins("WEBP");
  }

  void open(const image_file& file) override;
  void close() noexcept override;
};

}  // namespace lade::media
