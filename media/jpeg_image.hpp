// lade's own JPEG decoder: from the bytes of a file to planes of samples.

#pragma once

#include "jpeg_headers.hpp"
#include "jpeg_kernels.hpp"
#include "jpeg_tables.hpp"
#include "scratch.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace lade::media {

// Part of an image, in pixels.
struct jpeg_part {
  int left = 0;
  int top = 0;
  int right = 0;
  int bottom = 0;
};

// Decodes one image after another, by rows of MCUs, alone or together with a second image.
//
//   open --> reduce (optional) --> begin --> decode ... --> close
//
// One thread at a time.
class jpeg_image {
 public:
  explicit jpeg_image(simd level = best_simd()) : kernels_(&jpeg_kernels_of(level)) {}

  // Reads the headers and unstuffs the scan. `file` and `tables` must live until close().
  // Returns false if libjpeg-turbo must read the image:
  //   - read_jpeg_headers does not support it
  //   - the scan does not end with the image
  //   - it has more than `max_pixels`; then no memory is allocated for it
  bool open(std::span<const std::byte> file, jpeg_table_cache& tables,
            std::int64_t max_pixels = std::numeric_limits<std::int64_t>::max());
  const jpeg_headers& headers() const noexcept { return headers_; }

  // Sets the scale 1 / `reduction` (1, 2, 4 or 8); sizes are rounded up. As in libjpeg, subsampled
  // components are reduced by less if they then have the size of the first one. Afterwards, rows
  // and columns are of the reduced image. Call after open.
  void reduce(int reduction) noexcept;

  // Sets the part that will be decoded. Call once, before decode.
  // `kept`: how many rows stay valid, counted back from the last requested row.
  // A small image allocates memory for its whole part, so that it can be decoded completely beside
  // another one. A large image allocates memory for a few rows, which fit into the CPU cache.
  void begin(const jpeg_part& part, int kept);

  // Decodes up to row `y` of the image, and the rows that its upsampling needs. Decodes `other`
  // together with it, up to the end of its part; null: there is none. Returns false if the data are
  // damaged, or so unusual that libjpeg-turbo must read the image.
  bool decode(int y, jpeg_image* other);

  // The most memory that the planes of an image take, in bytes.
  static std::size_t most_plane_bytes(const jpeg_headers& headers, int kept) noexcept;

  // Whether row `y`, or the whole part, is decoded.
  bool has_row(int y) const noexcept { return row_ >= std::min(mcu_rows_above(y + 1), end_row_); }
  bool is_complete() const noexcept { return !started_ || damaged_ || row_ >= end_row_; }

  // Whether it can be the `other` image of decode().
  bool decodes() const noexcept { return started_ && !damaged_ && row_ < end_row_ && has_room(); }

  // A row of component `c`. row_padding bytes before and after it may be read and written.
  // `y`: the row of the component; it must be valid.
  std::uint8_t* plane_row(std::size_t c, int y) noexcept {
    const auto& plane = planes_[c];
    return plane.first + y % plane.rows * plane.stride;
  }

  // The width of a component, and how many samples of the first component one of its samples spans.
  int plane_width(std::size_t c) const noexcept;
  int plane_height(std::size_t c) const noexcept;
  int columns_of_first(std::size_t c) const noexcept;
  int rows_of_first(std::size_t c) const noexcept;

  // How many pixels of the unreduced image one sample spans.
  int pixels_across(std::size_t c) const noexcept {
    return 8 * headers_.across / (across(c) * sides_[c]);
  }
  int pixels_down(std::size_t c) const noexcept {
    return 8 * headers_.down / (down(c) * sides_[c]);
  }

  // How many rows of a component are in the MCUs that hold the image's rows above `bottom`.
  int rows_above(std::size_t c, int bottom) const noexcept;

  // Frees the memory of this image, and drops its headers, which are views of the file.
  void close() noexcept;

 private:
  struct sample_plane {
    std::uint8_t* first = nullptr;  // sample 0 of rows 0, `rows`, ...
    std::ptrdiff_t stride = 0;
    int rows = 1;
  };

  bool prepare(std::span<const std::byte> file, jpeg_table_cache& tables, std::int64_t max_pixels);
  bool unstuff(std::span<const std::uint8_t> bytes);
  bool find_tables(jpeg_table_cache& tables);
  void order_blocks() noexcept;
  void place_blocks() noexcept;
  int mcu_width() const noexcept { return sides_[0] * headers_.across; }
  int mcu_height() const noexcept { return sides_[0] * headers_.down; }
  int across(std::size_t c) const noexcept { return c == 0 ? headers_.across : 1; }
  int down(std::size_t c) const noexcept { return c == 0 ? headers_.down : 1; }
  std::size_t lay_out(int rows_of_mcus) noexcept;
  bool has_room() const noexcept { return row_ < oldest_row_ + kept_rows_; }
  int mcu_rows_above(int bottom) const noexcept;
  void begin_segment() noexcept;
  void begin_chunk() noexcept;
  void end_chunk() noexcept;
  bool ends_segment() const noexcept;
  void transform_chunk() noexcept;
  void transform_component(std::size_t c) noexcept;
  void pad_rows() noexcept;

  const jpeg_kernels* kernels_;
  jpeg_headers headers_;
  std::array<std::shared_ptr<const dc_table>, 3> dc_;
  std::array<std::shared_ptr<const ac_table>, 3> ac_;

  std::array<int, 3> sides_{8, 8, 8};  // size of a decoded block in samples, per component

  scratch scan_;                             // unstuffed
  std::vector<std::uint64_t> segment_ends_;  // position of the end of each restart segment
  std::size_t segment_ = 0;

  scratch samples_;
  std::array<sample_plane, 3> planes_;

  // The part and the position of decoding, in MCUs. A chunk ends at the end of a row of MCUs and at
  // a restart.
  int columns_ = 0;
  int rows_ = 0;
  int first_row_ = 0;
  int end_row_ = 0;
  int first_column_ = 0;
  int end_column_ = 0;
  int kept_ = 0;        // rows of the image that stay valid before the last requested one
  int kept_rows_ = 0;   // rows of MCUs in memory
  int oldest_row_ = 0;  // the oldest row that may still be requested
  int row_ = 0;
  int column_ = 0;
  int chunk_ = 0;
  int until_restart_ = 0;
  bool started_ = false;
  bool damaged_ = false;

  // A block of the chunk, and the position of its samples.
  struct placed_block {
    const std::int16_t* coefficients = nullptr;
    std::ptrdiff_t samples = 0;  // offset from the first sample of the chunk
  };
  static constexpr std::size_t most_blocks = jpeg_chunk * 4;
  std::array<std::array<placed_block, most_blocks>, 3> blocks_;

  jpeg_stream stream_;
};

}  // namespace lade::media
