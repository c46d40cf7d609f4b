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
// - Formats: grey, planar YUV and RGB, NV12, NV16, NV21, P010 and its kin, packed RGB and RGBA; 8
// to
//   16 bits.
// - Matrix: as the frame states; if it does not, BT.709 from 1280 x 577 pixels on, else BT.601.
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
// they have none, that of the frame.
tensor to_tensor(const frame& from, const image_options& how = {}, random draw = {});

}  // namespace lade::media
