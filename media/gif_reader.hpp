// GIF, decoded here: FFmpeg passes over images whose data end early, and forgets the colours of
// transparent pixels.

#pragma once

#include "byte_view.hpp"
#include "frame_reader.hpp"

#include <cstdint>
#include <vector>

namespace lade::media {

// Reads the first image as it lies on the screen, which is enlarged if the image is larger.
// Transparent pixels have the colour that the palette gives them; what the image leaves free of
// the screen has the transparent colour, or the first of the palette.
class gif_reader final : public frame_reader {
 public:
  static bool recognises(byte_view file) noexcept { return file.begins("GIF8"); }

  void open(const image_file& file) override;

 private:
  struct picture;

  static picture find_picture(const image_file& file);
  void decode(const image_file& file, const picture& first);

  std::vector<std::uint8_t> codes_;    // the compressed pixels
  std::vector<std::uint8_t> indices_;  // the pixels, looked up in the palette afterwards
};

}  // namespace lade::media
