#include "bmp_reader.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

namespace lade::media {

// Values of biCompression.
static constexpr unsigned bmp_plain = 0;
static constexpr unsigned bmp_runs_8 = 1;
static constexpr unsigned bmp_runs_4 = 2;
static constexpr unsigned bmp_masks = 3;
static constexpr unsigned bmp_masks_alpha = 6;

void bmp_reader::open(const image_file& file) {
  const auto file_header = read_header(file);
  if (file_header.compression == bmp_runs_8 || file_header.compression == bmp_runs_4)
    read_runs(file, file_header);
  else
    read_rows(file, file_header);
}

void bmp_reader::close() noexcept {
  indices_.end_image();
  frame_reader::close();
}

bmp_reader::header bmp_reader::read_header(const image_file& file) {
  const support::byte_view bytes(file.bytes);
  const support::byte_view info = bytes.from(14);
  const auto size = info.little(0, 4);
  if (size != 12 && size != 16 && (size < 40 || size > 124))
    throw error(errc::unsupported, file.doing,
                fmt::format("a BMP with a header of {} bytes", size));
  if (!info.holds(0, size)) throw_damaged(file, "BMP", "its header is cut off");
  const bool narrow = size == 12;
  header file_header{
      .width = narrow ? static_cast<std::int64_t>(info.little(4, 2))
                      : static_cast<std::int32_t>(info.little(4, 4)),
      .height = narrow ? static_cast<std::int64_t>(info.little(6, 2))
                       : static_cast<std::int32_t>(info.little(8, 4)),
      .bits = static_cast<unsigned>(info.little(narrow ? 10 : 14, 2)),
      .compression = size < 40 ? bmp_plain : static_cast<unsigned>(info.little(16, 4)),
      .pixels = bytes.little(10, 4)};
  file_header.top_down = file_header.height < 0;
  file_header.height = std::abs(file_header.height);
  set_shape(file, file_header.width, file_header.height, false);
  check_kind(file, file_header);
  if (file_header.bits > 8)
    read_masks(file, info, file_header);
  else
    read_palette(file, info.from(size), size < 40 ? 0 : info.little(32, 4), file_header.bits,
                 narrow ? 3 : 4);
  return file_header;
}

void bmp_reader::check_kind(const image_file& file, const header& file_header) {
  const auto bits = file_header.bits;
  const bool good =
      file_header.compression == bmp_plain ? bits == 16 || bits == 24 || bits == 32 || bits == 1 ||
                                                 bits == 2 || bits == 4 || bits == 8
      : file_header.compression == bmp_runs_8 ? bits == 8
      : file_header.compression == bmp_runs_4 ? bits == 4
      : file_header.compression == bmp_masks || file_header.compression == bmp_masks_alpha
          ? bits == 16 || bits == 32
          : false;
  if (good) return;
  throw error(errc::unsupported, file.doing,
              fmt::format("a BMP of {} bits with compression {}", bits, file_header.compression));
}

// `info`: the file from the header on. Masks follow the header's first 40 bytes, whatever its size.
void bmp_reader::read_masks(const image_file& file, support::byte_view info, header& file_header) {
  constexpr std::array<std::uint32_t, 3> of_16_bits{0x7c00, 0x3e0, 0x1f};
  constexpr std::array<std::uint32_t, 3> of_32_bits{0xff0000, 0xff00, 0xff};
  auto masks = file_header.bits == 16 ? of_16_bits : of_32_bits;
  if (file_header.compression != bmp_plain) {
    if (!info.holds(40, 12)) throw_damaged(file, "BMP", "its header is cut off");
    for (std::size_t c = 0; c < 3; ++c)
      masks[c] = static_cast<std::uint32_t>(info.little(40 + 4 * c, 4));
  }
  for (std::size_t c = 0; c < 3; ++c) {
    const int shift = masks[c] == 0 ? 0 : std::countr_zero(masks[c]);
    const auto ones = masks[c] >> shift;
    if (masks[c] == 0 || (ones & (ones + 1)) != 0 || ones > 0xffff)
      throw error(errc::unsupported, file.doing, "a BMP with channels whose bits are not adjacent");
    file_header.masks[c] = {.shift = shift, .bits = std::popcount(ones)};
  }
}

void bmp_reader::read_palette(const image_file& file, support::byte_view entries, std::size_t used,
                              unsigned bits, std::size_t entry_bytes) {
  const auto all = std::size_t{1} << bits;
  const auto count = used > 0 ? std::min(used, all) : all;
  if (!entries.holds(0, count * entry_bytes)) throw_damaged(file, "BMP", "its palette is cut off");
  colours_ = {};
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t c = 0; c < 3; ++c) colours_[i][c] = entries[i * entry_bytes + 2 - c];
}

// Rows are stored from the bottom up.
static std::size_t bmp_row(std::size_t i, std::int64_t height, bool top_down) {
  return top_down ? i : static_cast<std::size_t>(height) - 1 - i;
}

void bmp_reader::read_rows(const image_file& file, const header& file_header) {
  const auto count = static_cast<std::size_t>(file_header.height);
  const auto used = (static_cast<std::size_t>(file_header.width) * file_header.bits + 7) / 8;
  const auto stride = (used + 3) / 4 * 4;
  const support::byte_view bytes(file.bytes);
  if (!bytes.holds(file_header.pixels, (count - 1) * stride + used))
    throw_damaged(file, "BMP", "it is cut off");
  auto* frame = make_frame();
  for (std::size_t i = 0; i < count; ++i)
    convert_row(bytes.part(file_header.pixels + i * stride, used), file_header,
                frame + bmp_row(i, file_header.height, file_header.top_down) * frame_stride());
}

void bmp_reader::convert_row(support::byte_view row, const header& file_header, std::uint8_t* out) {
  const auto width = static_cast<std::size_t>(file_header.width);
  if (file_header.bits <= 8) {
    auto* indices = indices_.reserve(width);
    for (std::size_t x = 0, bit = 0; x < width; ++x, bit += file_header.bits)
      indices[x] = static_cast<std::uint8_t>((row[bit / 8] >> (8 - file_header.bits - bit % 8)) &
                                             ((1U << file_header.bits) - 1));
    return colours_.look_up(indices, width, out);
  }
  const auto bytes = file_header.bits / 8;
  for (std::size_t x = 0; x < width; ++x, out += 3) {
    std::uint32_t pixel = 0;
    for (unsigned i = 0; i < bytes; ++i) pixel |= std::uint32_t{row.data()[x * bytes + i]} << 8 * i;
    for (std::size_t c = 0; c < 3; ++c)
      out[c] =
          byte_of(pixel >> file_header.masks[c].shift & ((1U << file_header.masks[c].bits) - 1),
                  file_header.masks[c].bits);
  }
}

// RLE8 and RLE4. A run is a count and an index, or with 4 bits a pair of alternating indices. A
// count of 0 is an escape, followed by 0: end of the row; 1: end of the image; 2: a step right and
// up; or the number of literal indices that follow.
void bmp_reader::read_runs(const image_file& file, const header& file_header) {
  const support::byte_view data = support::byte_view(file.bytes).from(file_header.pixels);
  const auto width = static_cast<std::size_t>(file_header.width);
  const auto height = static_cast<std::size_t>(file_header.height);
  const bool halves = file_header.compression == bmp_runs_4;
  auto* indices = indices_.reserve(width * height);
  std::fill_n(indices, width * height, std::uint8_t{0});
  std::size_t x = 0;
  std::size_t row = 0;
  const auto put = [&](unsigned index) {
    if (x < width)
      indices[bmp_row(row, file_header.height, file_header.top_down) * width + x] =
          static_cast<std::uint8_t>(index);
    ++x;
  };
  const auto half = [](unsigned byte, std::size_t i) { return i % 2 == 0 ? byte >> 4 : byte & 15; };
  for (std::size_t at = 0; row < height;) {
    if (!data.holds(at, 2)) throw_damaged(file, "BMP", "it is cut off");
    const std::size_t count = data[at];
    const unsigned value = data[at + 1];
    at += 2;
    if (count > 0) {
      for (std::size_t i = 0; i < count; ++i) put(halves ? half(value, i) : value);
    } else if (value == 0) {
      x = 0;
      ++row;
    } else if (value == 1) {
      break;
    } else if (value == 2) {
      if (!data.holds(at, 2)) throw_damaged(file, "BMP", "it is cut off");
      x += data[at];
      row += data[at + 1];
      at += 2;
    } else {
      const std::size_t bytes = halves ? (value + 1) / 2 : value;
      if (!data.holds(at, bytes)) throw_damaged(file, "BMP", "it is cut off");
      for (std::size_t i = 0; i < value; ++i)
        put(halves ? half(data[at + i / 2], i) : data[at + i]);
      at += (bytes + 1) / 2 * 2;
    }
    if (x >= width && row + 1 == height) break;
  }
  auto* frame = make_frame();
  for (std::size_t y = 0; y < height; ++y)
    colours_.look_up(indices + y * width, width, frame + y * frame_stride());
}

}  // namespace lade::media
