// Reads TIFF with libtiff.

#pragma once

#include "frame_reader.hpp"

#include <lade/support/byte_view.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lade::media {

struct tiff_layout;
class tiff_page;

// Reads the first page. Supports:
// - strips or tiles, with interleaved or separate samples
// - unsigned samples of 1 to 16 bits
// - grey, RGB, palette, CMYK and YCbCr
// - every compression that libtiff has, except old-style JPEG
class tiff_reader final : public frame_reader {
 public:
  static bool recognises(support::byte_view file) noexcept;

  void open(const image_file& file) override;
  void close() noexcept override;

 private:
  void read_blocks(tiff_page& page, std::uint8_t* frame);
  void convert_row(const tiff_layout& layout, const std::uint8_t* row, std::size_t count,
                   std::uint8_t* out);

  std::vector<std::uint16_t> line_;  // samples of a row as stored
  scratch blocks_;                   // a strip or tile of each plane
};

}  // namespace lade::media
