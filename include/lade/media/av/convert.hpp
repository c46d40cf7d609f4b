// Frames of video as tensors.

#pragma once

#include <lade/media/av/frame.hpp>
#include <lade/media/image.hpp>
#include <lade/media/picture.hpp>
#include <lade/random.hpp>
#include <lade/tensor.hpp>

namespace lade::media {

// The planes of a frame, which must outlive the result, as write_picture takes them.
//
// - Formats: grey, planar YUV and RGB, NV12, NV16, NV21, P010 and its kin, packed RGB and RGBA; of
//   8 to 16 bits.
// - Matrix: as the frame states; if it does not, BT.709 for a width of at least 1280 or a height
//   above 576, else BT.601.
// - Range: as the frame states; if it does not, limited, but full for JPEG's formats, grey and RGB.
// - Chroma siting: as the frame states; if it does not, left, but centre for JPEG's formats.
//
// Throws error(unsupported) for other formats and matrices, naming them, and
// error(invalid_argument) for audio.
picture picture_of(const frame& from);

// The Exif orientation, 1 to 8, of a stream's frames.
int exif_orientation_of(const stream_info& stream) noexcept;

// Writes a frame into `out` as write_picture does: resized, cropped, converted. The frame is turned
// as its stream says if how.orient. Throws what picture_of and write_picture throw.
void write_frame(const frame& from, const image_options& how, const tensor& out, random draw = {});

// The same into a new tensor in memory of the calling stage. Its size is that of the options or, if
// they have none, that of the frame. Throws error(invalid_argument) if only one of width and height
// is given.
tensor to_tensor(const frame& from, const image_options& how = {}, random draw = {});

// The planes of a frame without conversion, as the ffmpeg program writes raw video: u8, or u16 for
// samples of more than 8 bits, in the order of the planes.
//
// - grey: [height, width]; RGB and RGBA side by side: [height, width, 3 or 4]
// - 4:4:4 and planar RGB: [planes, height, width]
// - 4:2:0, NV12, NV21, P010: [height * 3 / 2, width]; 4:2:2, NV16: [height * 2, width]. These are
//   rows of luma, and behind them the chroma, whose rows are not those of the tensor.
//
// Throws error(unsupported) for other formats, and for odd sizes of those with fewer chroma
// samples.
tensor_spec planes_spec(const frame& of);

// Copies the planes into `out`, a contiguous tensor of that spec in memory of the host, such as a
// slot of a batch. Throws error(invalid_argument) for another.
void write_planes(const frame& from, const tensor& out);

// The same into a new tensor in memory of the calling stage.
tensor planes_to_tensor(const frame& from);

}  // namespace lade::media
