#include "tiff_reader.hpp"
#include "colours.hpp"
#include "tiff_page.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace lade::media {

bool tiff_reader::recognises(support::byte_view file) noexcept {
  for (const char* magic : {"II*\0", "MM\0*", "II+\0", "MM\0+"})
    if (file.begins({magic, 4})) return true;
  return false;
}

// Writes `count` samples of a row to every `step`-th element of `out`. Samples of fewer than 16
// bits are packed, high bit first.
static void tiff_samples(const std::uint8_t* in, int bits, std::size_t count, std::uint16_t* out,
                         std::size_t step) {
  if (bits == 8) {
    for (std::size_t i = 0; i < count; ++i) out[i * step] = in[i];
  } else if (bits == 16) {
    for (std::size_t i = 0; i < count; ++i) std::memcpy(out + i * step, in + 2 * i, 2);
  } else {
    for (std::size_t i = 0, bit = 0; i < count; ++i) {
      unsigned value = 0;
      for (int b = 0; b < bits; ++b, ++bit)
        value = value << 1 | ((in[bit / 8] >> (7 - bit % 8)) & 1U);
      out[i * step] = static_cast<std::uint16_t>(value);
    }
  }
}

// Divides a premultiplied colour by its alpha, both of `bits` bits. Returns 8 bits.
static std::uint8_t tiff_divided(std::uint32_t colour, std::uint32_t alpha, int bits) {
  if (bits < 8) return tiff_divided(byte_of(colour, bits), byte_of(alpha, bits), 8);
  if (alpha == 0) return 0;
  const auto most = (std::uint32_t{1} << bits) - 1;
  return byte_of(std::min(colour * most / alpha, most), bits);
}

// Converts a pixel to 1 or 3 bytes.
static void tiff_pixel(const tiff_layout& layout, const std::uint16_t* samples, std::uint8_t* out) {
  using colours = tiff_layout::colours;
  if (layout.kind == colours::palette) {
    for (std::size_t c = 0; c < 3; ++c)
      out[c] = static_cast<std::uint8_t>(layout.map[c][samples[0]] >> layout.map_shift);
    return;
  }
  std::array<std::uint8_t, 5> bytes;
  const auto count = layout.colours_of_pixel();
  for (std::size_t c = 0; c < count; ++c)
    bytes[c] = layout.premultiplied ? tiff_divided(samples[c], samples[count], layout.bits)
                                    : byte_of(samples[c], layout.bits);
  if (layout.kind == colours::inverted_grey) bytes[0] = static_cast<std::uint8_t>(255 - bytes[0]);
  if (layout.kind != colours::inks) {
    std::copy_n(bytes.begin(), count, out);
    return;
  }
  for (auto& ink : bytes) ink = static_cast<std::uint8_t>(255 - ink);
  std::ranges::copy(rgb_of_inverted_inks(bytes.data()), out);
}

void tiff_reader::open(const image_file& file) {
  tiff_page page(file);
  const auto& layout = page.layout();
  set_shape(file, layout.width, layout.height, false);
  page.read_layout();
  set_shape(file, layout.width, layout.height, layout.is_grey());
  auto* frame = make_frame();
  if (layout.kind == tiff_layout::colours::converted)
    page.read_converted(frame);
  else
    read_blocks(page, frame);
}

void tiff_reader::close() noexcept {
  blocks_.end_image();
  frame_reader::close();
}

void tiff_reader::read_blocks(tiff_page& page, std::uint8_t* frame) {
  const auto& layout = page.layout();
  auto* blocks = blocks_.reserve(layout.block_bytes() * layout.planes());
  const auto channels = static_cast<std::size_t>(frame_channels());
  for (std::uint32_t top = 0; top < layout.height; top += layout.block_height)
    for (std::uint32_t left = 0; left < layout.width; left += layout.block_width) {
      for (std::size_t plane = 0; plane < layout.planes(); ++plane)
        page.read_block(left, top, static_cast<std::uint16_t>(plane),
                        blocks + plane * layout.block_bytes());
      const auto columns = std::min(layout.block_width, layout.width - left);
      const auto rows = std::min(layout.block_height, layout.height - top);
      for (std::uint32_t y = 0; y < rows; ++y)
        convert_row(layout, blocks + y * layout.block_stride, columns,
                    frame + (top + y) * frame_stride() + left * channels);
    }
}

void tiff_reader::convert_row(const tiff_layout& layout, const std::uint8_t* row, std::size_t count,
                              std::uint8_t* out) {
  using colours = tiff_layout::colours;
  const bool verbatim = (layout.kind == colours::grey || layout.kind == colours::rgb) &&
                        layout.bits == 8 && layout.samples == layout.colours_of_pixel() &&
                        layout.planes() == 1;
  if (verbatim) {
    std::memcpy(out, row, count * layout.samples);
    return;
  }
  line_.resize(count * layout.samples);
  for (std::size_t plane = 0; plane < layout.planes(); ++plane)
    tiff_samples(row + plane * layout.block_bytes(), layout.bits,
                 layout.planar ? count : line_.size(), line_.data() + plane, layout.planes());
  for (std::size_t x = 0; x < count; ++x, out += frame_channels())
    tiff_pixel(layout, line_.data() + x * layout.samples, out);
}

}  // namespace lade::media
