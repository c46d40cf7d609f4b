// GIF, decoded here: FFmpeg passes over images whose data end early, and forgets the colours of
// transparent pixels.

#pragma once

#include "frame_reader.hpp"

#include <lade/detail/common/byte_view.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace lade::media {

// Reads the first image as it lies on the screen, which is enlarged if the image is larger.
// Transparent pixels have the colour that the palette gives them; what the image leaves free of
// the screen has the transparent colour, or the first of the palette.
class gif_reader final : public frame_reader {
 public:
  static bool recognises(detail::byte_view file) noexcept { return file.begins("GIF8"); }

  // Width and height of the screen with its first image, or of the screen alone if there is none.
  static std::pair<std::size_t, std::size_t> size_of(detail::byte_view file);

  void open(const image_file& file) override;
  void close() noexcept override;

 private:
  struct picture;

  static std::optional<picture> find_picture(detail::byte_view bytes);
  const std::uint8_t* decode(const image_file& file, const picture& first);

  scratch codes_;    // the compressed pixels
  scratch indices_;  // the pixels, looked up in the palette afterwards
};

}  // namespace lade::media
