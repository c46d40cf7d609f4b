// Images out: frames and tensors as files.

#pragma once

#include <lade/media/av/frame.hpp>
#include <lade/tensor.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace lade::media {

struct save_image_options {
  // In the format's unit: 0 to 100 of WebP, the higher the better; 2 to 31 of JPEG, the lower the
  // better. The encoder's default if empty.
  std::optional<double> quality = {};

  // FFmpeg's name. If empty, what loses least of the picture, and "yuv420p" for JPEG.
  std::string_view pixel_format = {};

  // Further options of the encoder as "key=value:key=value": "lossless=1" of WebP. Unknown ones are
  // refused.
  std::string_view options = {};
};

// Writes an image in the format of its extension: png, jpg, jpeg, webp, bmp, tif, tiff. PNG, BMP
// and TIFF restore 8-bit RGB exactly. `picture` of the second: u8 [height, width, 3] RGB.
//
// The file has its name when it is complete, as with muxer. Blocks; any thread. Throws
// error(unsupported) for another extension, error(invalid_argument) for options and tensors that do
// not work, the system's error for a disk that is full or fails.
void save_image(const std::string& path, const frame& picture,
                const save_image_options& options = {});
void save_image(const std::string& path, const tensor& picture,
                const save_image_options& options = {});

}  // namespace lade::media
