#include <lade/cuda/stream.hpp>
#include <lade/cuda/write_pictures.hpp>

#include "resample_queue.hpp"

#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>

namespace lade::cuda {

static constexpr std::string_view writing_pictures = "write pictures on the device";

static int sample_bytes_of(const yuv_picture& picture) { return picture.bits > 8 ? 2 : 1; }
static int plane_count(const yuv_picture& picture) {
  return picture.layout == yuv_layout::y_cb_cr ? 3 : 2;
}

static std::int64_t row_bytes_of(const yuv_picture& picture, int plane) {
  const int step = 1 << picture.chroma_shift_x;
  const int width = plane == 0 ? picture.width : (picture.width + step - 1) / step;
  const int channels = plane > 0 && plane_count(picture) == 2 ? 2 : 1;
  return std::int64_t{width} * channels * sample_bytes_of(picture);
}

static void check_kind(const yuv_picture& picture, const checked_item& item) {
  if (picture.layout > yuv_layout::y_crcb) item.refuse_kind("layout is unknown");
  if (picture.siting > yuv_siting::top_left) item.refuse_kind("siting is unknown");
  if (picture.matrix > yuv_matrix::bt2020) item.refuse_kind("matrix is unknown");
  if (picture.bits < 8 || picture.bits > 16)
    item.refuse_kind(fmt::format("bits is {}", picture.bits));
  const int most_shift = picture.bits > 8 ? 16 - picture.bits : 0;
  if (picture.shift < 0 || picture.shift > most_shift)
    item.refuse_kind(fmt::format("shift is {}, and bits is {}", picture.shift, picture.bits));
  const auto is_known = [](int shift) { return shift >= 0 && shift <= 2; };
  if (!is_known(picture.chroma_shift_x) || !is_known(picture.chroma_shift_y))
    item.refuse_kind("chroma_shift_x or chroma_shift_y is not 0 to 2");
}

static void check_planes(const yuv_picture& picture, const checked_item& item) {
  const auto alignment = static_cast<std::size_t>(sample_bytes_of(picture));
  for (int p = 0; p < plane_count(picture); ++p) {
    const auto& plane = picture.planes[static_cast<std::size_t>(p)];
    const auto name = fmt::format("planes[{}]", p);
    check_memory(plane.data, alignment, item, name + ".data");
    check_pitch(plane.pitch, row_bytes_of(picture, p), item, name + ".pitch");
    if (plane.pitch % static_cast<std::int64_t>(alignment) != 0)
      item.refuse(name + ".pitch is not a multiple of 2 bytes");
  }
}

static void check_picture(const yuv_picture& picture, const image_batch& to,
                          const checked_item& item) {
  check_kind(picture, item);
  check_size(picture.width, picture.height, item);
  check_planes(picture, item);
  axes_of(picture.crop, picture.width, picture.height, to, item);
}

static void check_pictures(std::span<const yuv_picture> pictures, const image_batch& to) {
  const checked_item item{writing_pictures};
  if (pictures.empty()) item.refuse("pictures is empty");
  if (pictures.size() > std::numeric_limits<std::int32_t>::max()) item.refuse("too many pictures");
  check_batch(to, item);
  check_room(to, pictures.size(), item);
  if (to.channels != 3) item.refuse("to.channels is 1: it must be 3");
  for (std::size_t i = 0; i < pictures.size(); ++i)
    check_picture(pictures[i], to, {writing_pictures, "picture", i});
}

// Rec. ITU-R BT.601-7, 2.5.1; BT.709-6, item 3.2; BT.2020-2, table 4.
static yuv_conversion conversion_of(const yuv_picture& picture) {
  switch (picture.matrix) {
    case yuv_matrix::bt601: return conversion_for(0.299, 0.114, picture.full_range);
    case yuv_matrix::bt709: return conversion_for(0.2126, 0.0722, picture.full_range);
    case yuv_matrix::bt2020: return conversion_for(0.2627, 0.0593, picture.full_range);
  }
  return {};
}

// In limited range, codes of 8 bits and more differ by a power of two. In full range (Rec. ITU-T
// H.273, 8.3), the highest code becomes 255, and the middle of chroma 128.
static wide_code wide_code_of(const yuv_picture& picture, bool chroma) {
  wide_code result;
  if (!picture.full_range || picture.bits == 8) return result;
  const double most = ((1 << picture.bits) - 1) / static_cast<double>(1 << (picture.bits - 8));
  result.gain = static_cast<std::int16_t>(std::lrint((255 / most - 1) * 32768));
  if (chroma) result.centre = 128 << blend_bits;
  return result;
}

static resample_source resampled_picture(const yuv_picture& picture, const image_batch& to,
                                         std::size_t slot, const checked_item& item) {
  const auto axes = axes_of(picture.crop, picture.width, picture.height, to, item);
  resample_source result;
  for (int p = 0; p < plane_count(picture); ++p) {
    const auto& plane = picture.planes[static_cast<std::size_t>(p)];
    result.planes[p] = {static_cast<const unsigned char*>(plane.data), plane.pitch};
  }
  result.x = axes.x;
  result.y = axes.y;
  result.width = picture.width;
  result.height = picture.height;
  result.slot = static_cast<std::int32_t>(slot);
  result.conversion = conversion_of(picture);
  result.wide[0] = wide_code_of(picture, false);
  result.wide[1] = wide_code_of(picture, true);
  result.chroma_planes = static_cast<std::uint8_t>(plane_count(picture) - 1);
  result.chroma_shift_x = static_cast<std::uint8_t>(picture.chroma_shift_x);
  result.chroma_shift_y = static_cast<std::uint8_t>(picture.chroma_shift_y);
  result.site_x = picture.siting == yuv_siting::centre ? 0 : -1;
  result.site_y = picture.siting == yuv_siting::top_left ? -1 : 0;
  result.unused_bits =
      static_cast<std::uint8_t>(picture.bits > 8 ? 16 - picture.bits - picture.shift : 0);
  result.mirrored = picture.flip;
  result.cr_first = picture.layout == yuv_layout::y_crcb;
  return result;
}

void write_pictures(std::span<const yuv_picture> pictures, const image_batch& to, CUstream_st* on) {
  check_pictures(pictures, to);
  const checked_item item{writing_pictures};
  resample_queue bytes(to, 1, item, on);
  resample_queue words(to, 2, item, on);
  for (std::size_t i = 0; i < pictures.size(); ++i)
    (pictures[i].bits > 8 ? words : bytes).add(resampled_picture(pictures[i], to, i, item));
  bytes.flush();
  words.flush();
}

void write_pictures(std::span<const yuv_picture> pictures, const image_batch& to,
                    const stream& on) {
  const current_device scope(on.on());
  write_pictures(pictures, to, on.handle());
}

}  // namespace lade::cuda
