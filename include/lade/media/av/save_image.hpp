// Images out: frames and tensors as files, or as files in memory.

#pragma once

#include <lade/buffer.hpp>
#include <lade/media/av/frame.hpp>
#include <lade/media/resize.hpp>
#include <lade/tensor.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace lade::media {

struct save_image_options {
  // In the format's unit: 0 to 100 of WebP, the higher the better; FFmpeg's quantizer of JPEG, 2 to
  // 31, the lower the better. Other numbers are refused. The encoder's default if empty.
  std::optional<double> quality = {};

  // FFmpeg's name. If empty, what loses least of the picture, and "yuv420p" for JPEG.
  std::string_view pixel_format = {};

  // Further options of the encoder as "key=value:key=value": "lossless=1" of WebP. Unknown ones are
  // refused.
  std::string_view options = {};

  // Of tensors: [height, width, channels], or chw: [channels, height, width].
  image_layout tensor_layout = image_layout::hwc;

  // Whether frames are turned and mirrored as their stream says, as to_tensor() does.
  bool orient = true;
};

// Writes an image in the format of its extension: png, jpg, jpeg, webp, bmp, tif, tiff. PNG, BMP
// and TIFF restore 8-bit RGB and grey exactly, PNG and TIFF also RGBA. A tensor is u8 [height,
// width, channels] or as `tensor_layout` says, with 1 channel of grey, 3 of RGB, or 4 of RGBA,
// which JPEG refuses. A frame is written as it is shown: turned and mirrored as its stream says.
//
// The file has its name when it is complete, as with muxer. Blocks; any thread. Throws
// error(unsupported) for another extension, error(invalid_argument) for options and tensors that do
// not work, the system's error for a disk that is full or fails.
void save_image(const std::string& path, const frame& picture,
                const save_image_options& options = {});
void save_image(const std::string& path, const tensor& picture,
                const save_image_options& options = {});

// The same as bytes in memory, which is the calling stage's. `format`: one of the extensions above,
// without a dot. Errors say "encode an image (png)".
buffer encode_image(const frame& picture, std::string_view format,
                    const save_image_options& options = {});
buffer encode_image(const tensor& picture, std::string_view format,
                    const save_image_options& options = {});

}  // namespace lade::media
