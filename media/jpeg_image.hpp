// A JPEG that lade decodes itself: from its bytes to planes of samples.

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

// One image after another. `decode` goes on by a row of MCUs, alone or together with another image.
// For one thread.
class jpeg_image {
 public:
  explicit jpeg_image(simd level = best_simd()) : kernels_(&jpeg_kernels_of(level)) {}

  // Reads the headers and unstuffs the scan. False if libjpeg-turbo is to read the image: see
  // read_jpeg_headers; also if the scan does not end with the end of the image, and if the image
  // has more than `max_pixels`, for which no memory is allocated. `file` and `tables` outlive the
  // reading.
  bool open(std::span<const std::byte> file, jpeg_table_cache& tables,
            std::int64_t max_pixels = std::numeric_limits<std::int64_t>::max());
  const jpeg_headers& headers() const noexcept { return headers_; }

  // Has the image be decoded at 1 / `reduction` (1, 2, 4 or 8) of its size rounded up, as libjpeg
  // does it: coarse components are reduced by less where that makes them as large as the first.
  // From now on, rows and columns are those of the reduced image. To be called after open.
  void reduce(int reduction) noexcept;

  // Which part will be asked for, and how many rows of the image stay in place, counted back from
  // the last that was asked for. To be called once, before decode. Small images are decoded into
  // memory for all of their part, so that they can be taken along from the first row to the last;
  // of large ones only a few rows are in memory, where the cache of the processor holds them.
  void begin(const jpeg_part& part, int kept);

  // Decodes until row `y` of the image is complete, and the rows that its upsampling needs.
  // Meanwhile the other image, if not null, is decoded too, as far as its part goes. False if the
  // data are damaged, or so unusual that libjpeg-turbo is to read the image.
  bool decode(int y, jpeg_image* other);

  // What the planes of an image take at most, if `kept` rows stay in place.
  static std::size_t most_plane_bytes(const jpeg_headers& headers, int kept) noexcept;

  // Whether decode() has nothing to do for row `y`, and for any row.
  bool has_row(int y) const noexcept { return row_ >= std::min(mcu_rows_above(y + 1), end_row_); }
  bool is_complete() const noexcept { return !started_ || damaged_ || row_ >= end_row_; }

  // Whether it can be the `other` one.
  bool decodes() const noexcept { return started_ && !damaged_ && row_ < end_row_ && has_room(); }

  // A row of component `c`, from its first sample on. There are row_padding bytes before and behind
  // it that may be read and written. `y` is of the component, of a row that is still there.
  std::uint8_t* plane_row(std::size_t c, int y) noexcept {
    const auto& plane = planes_[c];
    return plane.first + y % plane.rows * plane.stride;
  }

  // Samples of a component, and how many of the first one lie side by side on one of its samples.
  int plane_width(std::size_t c) const noexcept;
  int plane_height(std::size_t c) const noexcept;
  int columns_of_first(std::size_t c) const noexcept;
  int rows_of_first(std::size_t c) const noexcept;

  // How many pixels of the image, before it is reduced, a sample stands for.
  int pixels_across(std::size_t c) const noexcept {
    return 8 * headers_.across / (across(c) * sides_[c]);
  }
  int pixels_down(std::size_t c) const noexcept {
    return 8 * headers_.down / (down(c) * sides_[c]);
  }

  // How many rows of a component belong to the MCUs with the rows of the image above `bottom`.
  int rows_above(std::size_t c, int bottom) const noexcept;

  // Frees what belongs to this image alone, and forgets its headers.
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

  std::array<int, 3> sides_{8, 8, 8};  // of a block, in samples of each component

  scratch scan_;                             // unstuffed
  std::vector<std::uint64_t> segment_ends_;  // positions in it: of each restart segment
  std::size_t segment_ = 0;

  scratch samples_;
  std::array<sample_plane, 3> planes_;

  // In MCUs: what is wanted, and where decoding is. A chunk never reaches over a row of MCUs or a
  // restart.
  int columns_ = 0;
  int rows_ = 0;
  int first_row_ = 0;
  int end_row_ = 0;
  int first_column_ = 0;
  int end_column_ = 0;
  int kept_ = 0;        // rows of the image, from the last that was asked for
  int kept_rows_ = 0;   // of MCUs, in memory
  int oldest_row_ = 0;  // which may still be asked for
  int row_ = 0;
  int column_ = 0;
  int chunk_ = 0;
  int until_restart_ = 0;
  bool started_ = false;
  bool damaged_ = false;

  // Of the blocks of a chunk, by component.
  struct placed_block {
    const std::int16_t* coefficients = nullptr;
    std::ptrdiff_t samples = 0;  // behind the first sample of the chunk
  };
  static constexpr std::size_t most_blocks = jpeg_chunk * 4;
  std::array<std::array<placed_block, most_blocks>, 3> blocks_;

  jpeg_stream stream_;
};

}  // namespace lade::media
