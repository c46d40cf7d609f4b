#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/media/mask.hpp>
#include <lade/media/slot.hpp>

#include "crop.hpp"
#include "decoders.hpp"
#include "image_header.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace lade::media {

// The nearest sample of an axis for each of `count` result samples. The quotient of integers is
// never rounded up to the next integer, so boxes of whole pixels are exact.
static std::vector<int> nearest_samples(double begin, double length, int size, int count) {
  std::vector<int> nearest(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const double centre = begin + (2.0 * i + 1) * length / (2.0 * count);
    nearest[static_cast<std::size_t>(i)] =
        std::clamp(static_cast<int>(std::floor(centre)), 0, size - 1);
  }
  return nearest;
}

static std::vector<int> nearest_columns(const chosen_crop& crop) {
  auto columns =
      nearest_samples(crop.box.left, crop.box.width, crop.image.width, crop.result.width);
  if (crop.flip) std::ranges::reverse(columns);
  return columns;
}

static std::vector<int> nearest_rows(const chosen_crop& crop) {
  return nearest_samples(crop.box.top, crop.box.height, crop.image.height, crop.result.height);
}

template <std::size_t Bytes>
static void copy_nearest(const tensor& mask, const tensor& out, const chosen_crop& crop) {
  const auto columns = nearest_columns(crop);
  auto* to = out.bytes();
  constexpr auto step = static_cast<std::ptrdiff_t>(Bytes);
  for (const int y : nearest_rows(crop)) {
    const auto* row = mask.bytes() + y * mask.strides()[0] * step;
    for (const int x : columns) {
      std::memcpy(to, row + x * mask.strides()[1] * step, Bytes);
      to += Bytes;
    }
  }
}

static void check_mask(const tensor& mask, const chosen_crop& crop, std::string_view doing) {
  check_chosen(crop, doing);
  if (mask.rank() != 2 || !mask.where().is_host_accessible())
    throw error(errc::invalid_argument, doing, "a mask is [height, width] in memory of the host");
  const auto extent = [&](std::size_t i) {
    return static_cast<int>(std::min<std::int64_t>(mask.shape()[i], INT32_MAX));
  };
  check_size_of(crop, {extent(1), extent(0)}, "the mask", doing);
}

static tensor_spec spec_of_mask(element_type type, const image_size& size) {
  return {type, {size.height, size.width}};
}

void crop_mask(const tensor& mask, const tensor& out, const chosen_crop& crop) {
  constexpr std::string_view doing = "crop a mask";
  check_mask(mask, crop, doing);
  require_slot_of(spec_of_mask(mask.type(), crop.result), out, doing);
  switch (element_bytes(mask.type())) {
    case 1: return copy_nearest<1>(mask, out, crop);
    case 2: return copy_nearest<2>(mask, out, crop);
    case 4: return copy_nearest<4>(mask, out, crop);
    default: return copy_nearest<8>(mask, out, crop);
  }
}

tensor crop_mask(const tensor& mask, const chosen_crop& crop) {
  check_mask(mask, crop, "crop a mask");
  const auto spec = spec_of_mask(mask.type(), crop.result);
  const tensor out(spec, allocate_now(spec.bytes()));
  crop_mask(mask, out, crop);
  return out;
}

// The stored rows and columns of a mask that become the result, and the strides of the result for
// them.
struct mask_plan {
  std::vector<int> rows;
  std::vector<int> columns;
  std::ptrdiff_t row_step = 0;
  std::ptrdiff_t column_step = 1;
};

static mask_plan plan_mask(const chosen_crop& crop, const orientation& turn) {
  mask_plan plan{
      .rows = nearest_rows(crop), .columns = nearest_columns(crop), .row_step = crop.result.width};
  auto height = crop.image.height, width = crop.image.width;
  if (turn.transposed) {
    std::swap(plan.rows, plan.columns);
    std::swap(plan.row_step, plan.column_step);
    std::swap(height, width);
  }
  if (turn.mirror_y)
    for (auto& y : plan.rows) y = height - 1 - y;
  if (turn.mirror_x)
    for (auto& x : plan.columns) x = width - 1 - x;
  return plan;
}

template <class T>
static void write_mask(const png_reader& from, const mask_plan& plan, T* out) {
  std::vector<std::uint16_t> line(static_cast<std::size_t>(from.width()));
  int in_line = -1;
  for (const int y : plan.rows) {
    if (y != in_line) from.row_values(y, line.data());
    in_line = y;
    auto* to = out;
    for (const int x : plan.columns) {
      *to = static_cast<T>(line[static_cast<std::size_t>(x)]);
      to += plan.column_step;
    }
    out += plan.row_step;
  }
}

static void write_mask(const png_reader& from, const mask_plan& plan, const tensor& out) {
  switch (out.type()) {
    case element_type::u8: return write_mask(from, plan, out.data<std::uint8_t>());
    case element_type::u16: return write_mask(from, plan, out.data<std::uint16_t>());
    case element_type::i32: return write_mask(from, plan, out.data<std::int32_t>());
    default: return write_mask(from, plan, out.data<std::int64_t>());
  }
}

// Borrows the thread's PNG reader for one mask, and closes it at the end.
class used_mask_reader {
 public:
  explicit used_mask_reader(const image_file& file) : png_(worker_->png) {
    if (&worker_->reader_of(file) != &png_)
      throw error(errc::unsupported, file.doing,
                  "a mask is a PNG file, whose values are kept without loss");
  }
  used_mask_reader(const used_mask_reader&) = delete;
  ~used_mask_reader() { png_.close(); }

  png_reader* operator->() const noexcept { return &png_; }
  const png_reader& operator*() const noexcept { return png_; }
  void record(const image_size& size) { worker_.record(size.width, size.height); }

 private:
  used_decoders worker_;
  png_reader& png_;
};

// Decodes a mask into `out`, which has the size of the crop's result.
static void decode_mask_file(const image_file& file, bool orient, const chosen_crop& crop,
                             const tensor& out) {
  used_mask_reader reader(file);
  constexpr int bits_of_u8 = 8;
  constexpr int bits_of_others = 16;
  reader->open_values(file, out.type() == element_type::u8 ? bits_of_u8 : bits_of_others);
  const auto turn = orientation_of(orient ? reader->orientation(file) : 1);
  image_size size{reader->width(), reader->height()};
  reader.record(size);
  if (turn.transposed) std::swap(size.width, size.height);
  check_size_of(crop, size, "the mask", file.doing);
  reader->decode_values(file);
  write_mask(*reader, plan_mask(crop, turn), out);
}

static std::string doing_with_mask(const sample& in, std::string_view field) {
  return fmt::format("decode the mask {}{}{}", field, field.empty() ? "" : " of ", in.name());
}

decode_mask::decode_mask(const image_options& image, const mask_options& mask)
    : field_(std::make_shared<const std::string>(mask.field)),
      image_(image),
      spec_(spec_of_mask(mask.type, {image.width, image.height})) {
  const auto require = [](bool condition, std::string_view reason) {
    if (!condition) throw error(errc::invalid_argument, "make decode_mask", reason);
  };
  require(mask.type == element_type::u8 || mask.type == element_type::u16 ||
              mask.type == element_type::i32 || mask.type == element_type::i64,
          "type must be u8, u16, i32 or i64");
  require(mask.field != image.field, "field must be another than the image's");
}

void decode_mask::operator()(const sample& in, const tensor& slot, const chosen_crop& crop) const {
  const auto doing = doing_with_mask(in, field());
  check_chosen(crop, doing);
  require_slot_of(spec_of_mask(spec_.type, crop.result), slot, doing);
  const image_file file{.bytes = encoded_bytes(in, field(), doing).bytes(),
                        .doing = doing,
                        .max_pixels = image_.options().max_pixels};
  decode_mask_file(file, image_.options().orient, crop, slot);
}

tensor decode_mask::operator()(const sample& in, const chosen_crop& crop) const {
  check_chosen(crop, doing_with_mask(in, field()));
  const auto spec = spec_of_mask(spec_.type, crop.result);
  const tensor out(spec, allocate_now(spec.bytes()));
  (*this)(in, out, crop);
  return out;
}

chosen_crop decode_mask::crop_for(const sample& in, random draw, std::string_view doing) const {
  const auto crop_field = image_.options().crop_field;
  return crop_field.empty() ? image_.crop_of(in, draw) : stored_crop(in, crop_field, doing);
}

void decode_mask::operator()(const sample& in, const tensor& slot, random draw) const {
  (*this)(in, slot, crop_for(in, draw, doing_with_mask(in, field())));
}

tensor decode_mask::operator()(const sample& in, random draw) const {
  return (*this)(in, crop_for(in, draw, doing_with_mask(in, field())));
}

// The number of pixels; 0 if the decoder will refuse the mask.
static std::size_t pixels_of_mask(support::byte_view file, std::int64_t max_pixels) {
  if (!png_reader::recognises(file)) return 0;
  const auto header = header_of(file);
  const auto pixels = static_cast<double>(header.width) * static_cast<double>(header.height);
  return pixels <= static_cast<double>(max_pixels) ? header.width * header.height : 0;
}

// The frame of FFmpeg's decoder, and the copy of the file that it reads.
std::size_t decode_mask::memory_to_write(const sample& in) const {
  const auto file = encoded_bytes_of(in, field());
  const auto pixels = pixels_of_mask(file, image_.options().max_pixels);
  const std::size_t of_value = file[24] > 8 ? 2 : 1;
  return pixels == 0 ? 0 : pixels * of_value + file.size();
}

std::size_t decode_mask::memory_needed(const sample& in) const {
  const auto size = size_of_result(in, image_.options());
  const auto values =
      size.width > 0 ? static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height)
                     : pixels_of_mask(encoded_bytes_of(in, field()), image_.options().max_pixels);
  return values * element_bytes(spec_.type) + memory_to_write(in);
}

}  // namespace lade::media
