// Pictures in memory, such as the output of video decoders, written to a tensor in one pass:
// cropped, rotated, resized, and converted to RGB or grey.

#pragma once

#include <lade/media/image.hpp>
#include <lade/random.hpp>
#include <lade/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lade::media {

// The weights of R, G and B in the luma. BT.2020 is the variant with non-constant luminance.
enum class colour_matrix : std::uint8_t { bt601, bt709, bt2020 };

// The samples of each plane. Underscores separate planes.
enum class plane_layout : std::uint8_t {
  grey,
  y_cb_cr,
  y_cb_cr_a,
  y_cbcr,  // NV12, NV16, P010, P016
  y_crcb,  // NV21
  g_b_r,
  g_b_r_a,
  rgb,
  bgr,
  rgba,
  bgra,
};

// The position of a chroma sample among the luma samples that share it, along one axis.
enum class chroma_site : std::uint8_t { first, middle, last };

// The positions on both axes; names as in H.273, 8.7 (chroma sample location types 0, 1 and 2).
struct chroma_siting {
  chroma_site x = chroma_site::first;
  chroma_site y = chroma_site::middle;
};
inline constexpr chroma_siting left_siting{chroma_site::first, chroma_site::middle};     // MPEG-2
inline constexpr chroma_siting centre_siting{chroma_site::middle, chroma_site::middle};  // JPEG
inline constexpr chroma_siting top_left_siting{chroma_site::first, chroma_site::first};

// The first sample of a plane, and the distance in bytes from one row to the next. The distance is
// negative if rows are stored bottom up.
struct picture_plane {
  const std::uint8_t* data = nullptr;
  std::ptrdiff_t stride = 0;
};

// A picture. The caller owns the memory of the planes, which must be valid until the call returns.
struct picture {
  int width = 0;  // in luma samples, 1 to 32768
  int height = 0;
  plane_layout layout = plane_layout::y_cb_cr;
  std::array<picture_plane, 4> planes{};  // in the order of the layout's name

  // Significant bits of a sample, 8 to 16. Samples of more than 8 are 16-bit words of this machine,
  // with `shift` unused bits below the significant ones: 6 for P010. Packed layouts have 8 bits.
  int bits = 8;
  int shift = 0;

  // One chroma sample belongs to 2^shift luma samples of an axis, rounded up: 0, 0 is 4:4:4; 1, 0
  // is 4:2:2; 1, 1 is 4:2:0; 0, 1 is 4:4:0; 2, 0 is 4:1:1; 2, 2 is 4:1:0. Unused by layouts without
  // chroma.
  int chroma_shift_x = 1;
  int chroma_shift_y = 1;
  chroma_siting siting = left_siting;

  double pixel_aspect = 1;  // width / height of a displayed pixel; for square_pixels 1/256 to 256

  colour_matrix matrix = colour_matrix::bt709;  // unused by layouts without chroma
  bool full_range = false;                      // 0..255 instead of 16..235 (chroma 16..240)
};

// Returns the width of a picture in square pixels if its height is kept; at least 1.
int shown_width(int width, double pixel_aspect) noexcept;

// Throws error(invalid_argument) naming a member of `options` that is invalid for every picture.
// `doing`: the operation that the error names, such as "make decode_clip". `max_pixels` is not used
// by pictures.
void check_picture_options(const image_options& options, std::string_view doing);

// Writes a picture into `out`, as decode_image writes an image.
//
// - `how`: used are `fit` and its parameters, the colour (bgr or not), `square_pixels`, `layout`,
//   `mean` and `stddev`. Other members are ignored.
// - `out`: u8, f16, bf16 or f32, [height, width, channels] or, for chw, [channels, height,
//   width]. It determines the size, the type and the number of channels: 1, 3 or 4. Pixels of hwc
//   and rows of chw must be contiguous; the planes of chw may be parts of a larger tensor.
// - `exif_orientation`: 1 to 8, as in Exif; 1 is upright.
//
// Result:
//
// - The filter is a triangle, antialiased, as for images. It is applied to the planes, before
//   colours are converted. Rows and columns that no pixel of the result needs are not read.
// - The result has 8 bits of precision, even if the samples have more or the elements of `out`
//   are floats. R, G and B differ from exact arithmetic by at most 2 of 255, grey by 1.
// - Grey is the luma, expanded to full range; for RGB it is 0.299 R + 0.587 G + 0.114 B. A grey
//   picture becomes three equal channels.
// - Alpha is resized like a colour, and written if `out` has four channels. It is opaque if the
//   picture has none, and always of full range. Colours are not multiplied by alpha.
//
// Any thread. Throws error(unsupported) for an unsupported combination, and error(invalid_argument)
// for an invalid size, plane, option or tensor. Both name the cause.
void write_picture(const picture& from, const image_options& how, const tensor& out,
                   random draw = {}, int exif_orientation = 1);

}  // namespace lade::media
