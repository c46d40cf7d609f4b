// Frames of video as tensors.

#pragma once

#include <lade/media/av/frame.hpp>
#include <lade/media/image.hpp>
#include <lade/media/picture.hpp>
#include <lade/random.hpp>
#include <lade/tensor.hpp>

namespace lade::media {

// Returns the planes of a frame, for write_picture. The frame must outlive the result.
//
// - Formats: grey, planar YUV and RGB, NV12, NV16, NV21, P010 and its variants, packed RGB and
//   RGBA; of 8 to 16 bits.
// - Matrix: as the frame states. Default: BT.709 for a width of at least 1280 or a height above
//   576; otherwise, and for JPEG's formats, BT.601.
// - Range: as the frame states, but full for RGB. Default: limited, but full for JPEG's formats
//   and grey.
// - Chroma siting: as the frame states. Default: left, but centre for JPEG's formats.
//
// Throws error(unsupported) naming other formats and matrices, and error(invalid_argument) for
// audio.
picture picture_of(const frame& from);

// Returns the Exif orientation, 1 to 8, of a stream's frames.
int exif_orientation_of(const stream_info& stream) noexcept;

// Writes a frame into `out` as write_picture does: resized, cropped, converted. The frame is turned
// as its stream states if how.orient. Throws as picture_of and write_picture do.
void write_frame(const frame& from, const image_options& how, const tensor& out, random draw = {});

// The same into a new tensor in memory of the calling stage. Its size is that of the options; if
// they have none, that of the frame. Throws error(invalid_argument) if only one of width and height
// is set.
tensor to_tensor(const frame& from, const image_options& how = {}, random draw = {});

// The spec of the planes of a frame without conversion, in the format of raw video of the ffmpeg
// program: u8, or u16 for samples of more than 8 bits, in the order of the planes.
//
// - grey: [height, width]; packed RGB and RGBA: [height, width, 3 or 4]
// - 4:4:4 and planar RGB: [planes, height, width]
// - 4:2:0, NV12, NV21, P010: [height * 3 / 2, width]; 4:2:2, NV16: [height * 2, width]. The rows
//   of luma are followed by the chroma, whose rows are not rows of the tensor.
//
// Throws error(unsupported) for other formats, and for odd sizes of formats with subsampled chroma.
tensor_spec planes_spec(const frame& of);

// Copies the planes into `out`, a contiguous tensor of that spec in host memory, such as a slot of
// a batch. Throws error(invalid_argument) for any other tensor.
void write_planes(const frame& from, const tensor& out);

// The same into a new tensor in memory of the calling stage.
tensor planes_to_tensor(const frame& from);

}  // namespace lade::media
