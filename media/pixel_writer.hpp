// The last step of a resize: writes rows of 8-bit channels as the elements of a tensor.

#pragma once

#include "pixel_kernels.hpp"
#include "scratch.hpp"

#include <lade/media/resize.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lade::media {

// Pixels in memory: a contiguous tensor or, with a `plane_stride`, planes of a larger one, such as
// frame t of a clip [channels, frames, height, width].
struct pixel_target {
  std::byte* data = nullptr;
  int width = 0;
  int height = 0;
  int channels = 3;  // 1: grey; 3: R, G, B; 4: R, G, B, alpha
  bool bgr = false;  // R and B are exchanged
  element_type type = element_type::u8;
  image_layout layout = image_layout::hwc;
  std::ptrdiff_t plane_stride = 0;     // chw: elements between planes; 0: width * height
  std::array<float, 3> mean{0, 0, 0};  // in the order of the target's channels; alpha has none
  std::array<float, 3> stddev{1, 1, 1};
};

// The order of the rows: bottom row first (`mirrored`), as columns (`transposed`), or last column
// first (both).
struct row_order {
  bool mirrored = false;
  bool transposed = false;
};

class pixel_writer {
 public:
  explicit pixel_writer(simd level = best_simd()) : kernels_(&pixel_kernels_of(level)) {}

  // Begins an image of `row_count()` rows of `row_width()` pixels.
  void begin(const pixel_target& target, row_order order);
  int row_width() const noexcept { return order_.transposed ? target_.height : target_.width; }
  int row_count() const noexcept { return order_.transposed ? target_.width : target_.height; }

  // Writes row y: grey; R, G, B; or R, G, B, alpha. Pointers may be equal.
  void write(int y, const std::uint8_t* const* rows);

  // Ends the image. Call after the last row.
  void end();

 private:
  static constexpr int tile = 16;  // rows and columns that are transposed at a time
  static std::size_t whole_tiles(int size) noexcept {
    return static_cast<std::size_t>((size + tile - 1) / tile * tile);
  }

  std::uint8_t* turned_row(int channel, int y) const noexcept;
  void write_columns(int y, std::size_t width);
  void write_row(int y, const std::uint8_t* const* rows);
  void write_planes(std::size_t first, const std::uint8_t* const* rows);
  void write_pixels(std::size_t first, const std::uint8_t* const* rows);
  void write_elements(std::size_t first, const std::uint8_t* values, int count,
                      const normalisation& by);

  const pixel_kernels* kernels_;
  pixel_target target_;
  row_order order_;
  std::array<normalisation, 4> by_channel_;
  normalisation by_pixel_;
  std::vector<std::uint8_t> interleaved_;
  scratch turned_memory_;
  std::uint8_t* turned_ = nullptr;  // rows to transpose, one plane of tiles per channel
  std::vector<std::uint8_t> columns_;
};

}  // namespace lade::media
