// Writing of images: frames and tensors as files on disk or in memory.

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
  // In the unit of the format: 0 to 100 of WebP, higher is better; FFmpeg's quantizer of JPEG, 2 to
  // 31, lower is better. Other numbers are refused. Empty: the encoder's default.
  std::optional<double> quality = {};

  // FFmpeg's name. If empty: the format that loses least of the picture, and "yuv420p" for JPEG.
  std::string_view pixel_format = {};

  // Further options of the encoder as "key=value:key=value": "lossless=1" of WebP. Unknown options
  // are refused.
  std::string_view options = {};

  // Dimensions of tensors: [height, width, channels], or chw: [channels, height, width].
  image_layout tensor_layout = image_layout::hwc;

  // Whether frames are turned and mirrored as their stream states, as in to_tensor().
  bool orient = true;
};

// Writes an image in the format of its extension: png, jpg, jpeg, webp, bmp, tif, tiff. PNG, BMP
// and TIFF preserve 8-bit RGB and grey exactly; PNG and TIFF also RGBA. A tensor is u8 [height,
// width, channels] or as `tensor_layout` states: 1 channel of grey, 3 of RGB, or 4 of RGBA, which
// JPEG refuses. A frame is written as displayed: turned and mirrored as its stream states.
//
// The file has its name only when it is complete, as with muxer. Blocks; any thread. Throws
// error(unsupported) for another extension, error(invalid_argument) for invalid options and
// tensors, and the system's error for a disk that is full or fails.
void save_image(const std::string& path, const frame& picture,
                const save_image_options& options = {});
void save_image(const std::string& path, const tensor& picture,
                const save_image_options& options = {});

// The same in memory of the calling stage. `format`: one of the extensions above, without a dot.
// Errors contain "encode an image (png)".
buffer encode_image(const frame& picture, std::string_view format,
                    const save_image_options& options = {});
buffer encode_image(const tensor& picture, std::string_view format,
                    const save_image_options& options = {});

}  // namespace lade::media
