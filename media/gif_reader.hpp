// Reads GIF (version 89a) with lade's own decoder: FFmpeg accepts images whose data end early, and
// drops the colours of transparent pixels.

#pragma once

#include "frame_reader.hpp"

#include <lade/support/byte_view.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace lade::media {

// Reads the first image at its position on the screen. The screen is enlarged if the image is
// larger. Transparent pixels have their colour of the palette. The rest of the screen has the
// transparent colour, or the first colour if there is none.
class gif_reader final : public frame_reader {
 public:
  static bool recognises(support::byte_view file) noexcept { return file.begins("GIF8"); }

  // The width and height of the screen, enlarged to hold its first image if there is one.
  static std::pair<std::size_t, std::size_t> size_of(support::byte_view file);

  void open(const image_file& file) override;
  void close() noexcept override;

 private:
  struct picture;

  static std::optional<picture> find_picture(support::byte_view bytes);
  const std::uint8_t* decode(const image_file& file, const picture& first);

  scratch codes_;    // the compressed pixels, contiguous
  scratch indices_;  // the decoded pixels
};

}  // namespace lade::media
