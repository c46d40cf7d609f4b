// Pictures in memory, as video decoders leave them, written to a tensor in one pass: cropped,
// turned, resized, and converted to RGB or grey.

#pragma once

#include <lade/media/image.hpp>
#include <lade/random.hpp>
#include <lade/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lade::media {

// Which weights of R, G and B the luma was made with. BT.2020 is the one of non-constant luminance.
enum class colour_matrix : std::uint8_t { bt601, bt709, bt2020 };

// Which samples a plane holds. Planes are separated by an underscore.
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

// Where, along one axis, a chroma sample lies among the luma samples that share it.
enum class chroma_site : std::uint8_t { first, middle, last };

// Both axes, by the names of H.273, 8.7 (chroma sample location types 0, 1 and 2).
struct chroma_siting {
  chroma_site x = chroma_site::first;
  chroma_site y = chroma_site::middle;
};
inline constexpr chroma_siting left_siting{chroma_site::first, chroma_site::middle};     // MPEG-2
inline constexpr chroma_siting centre_siting{chroma_site::middle, chroma_site::middle};  // JPEG
inline constexpr chroma_siting top_left_siting{chroma_site::first, chroma_site::first};

// The first sample of a plane, and the distance in bytes from a row to the next one: negative if
// the rows lie bottom up.
struct picture_plane {
  const std::uint8_t* data = nullptr;
  std::ptrdiff_t stride = 0;
};

// A picture whose planes are in memory that the caller owns, and keeps until the call returns.
struct picture {
  int width = 0;  // in luma samples, 1 to 32768
  int height = 0;
  plane_layout layout = plane_layout::y_cb_cr;
  std::array<picture_plane, 4> planes{};  // in the order of the layout's name

  // Significant bits of a sample, 8 to 16. Samples of more than 8 are 16-bit words of this machine,
  // with `shift` unused bits below the significant ones: 6 for P010. Packed layouts have 8 bits.
  int bits = 8;
  int shift = 0;

  // There is one chroma sample for each 2^shift luma samples of an axis, rounded up: 0, 0 is 4:4:4;
  // 1, 0 is 4:2:2; 1, 1 is 4:2:0; 0, 1 is 4:4:0; 2, 0 is 4:1:1; 2, 2 is 4:1:0. Unused by layouts
  // without chroma.
  int chroma_shift_x = 1;
  int chroma_shift_y = 1;
  chroma_siting siting = left_siting;

  double pixel_aspect =
      1;  // width / height of a pixel as it is shown; square_pixels takes 1/256 to 256

  colour_matrix matrix = colour_matrix::bt709;  // unused by layouts without chroma
  bool full_range = false;                      // 0..255 instead of 16..235 (chroma 16..240)
};

// The width in square pixels of a picture that is shown without changing its height; at least 1.
int shown_width(int width, double pixel_aspect) noexcept;

// Throws error(invalid_argument) naming a member of `how` that cannot work for any picture, behind
// `doing`: "make decode_clip". `max_pixels` is not used by pictures.
void check_picture_options(const image_options& how, std::string_view doing);

// Writes a picture into `out` as decode_image writes an image. `how` has the fit with its
// parameters, the colour (bgr or not), `square_pixels`, `layout`, `mean` and `stddev`; its other
// members are ignored. The size, the type and the number of channels (1, 3 or 4) are those of
// `out`: u8, f16, bf16 or f32 [height, width, channels] or, for chw, [channels, height, width].
// Pixels of hwc and rows of chw lie side by side; the planes of chw may be parts of a larger
// tensor. `exif_orientation`: 1 to 8, as Exif defines it; 1 is upright.
//
// - The filter is a triangle, antialiased, as for images. It works on the planes, before colours
//   are converted. Rows and columns that no pixel of the result needs are not read.
// - The result has 8 bits of precision, also where the samples have more, and the elements of
//   `out` are floats. R, G and B differ from exact arithmetic by at most 2 of 255, grey by 1.
// - Grey is the luma, expanded to full range. Of RGB it is 0.299 R + 0.587 G + 0.114 B. A grey
//   picture becomes three equal channels.
// - Alpha is resized like a colour, and written where `out` has four channels. It is opaque where
//   the picture has none. It is always of full range. Colours are not multiplied by it.
//
// Any thread. Throws error(unsupported) for a combination that is not handled, and
// error(invalid_argument) for a size, plane, option or tensor that cannot be. Both name what it is.
void write_picture(const picture& from, const image_options& how, const tensor& out,
                   random draw = {}, int exif_orientation = 1);

}  // namespace lade::media
