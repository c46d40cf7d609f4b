// Runs a resize from rows as a decoder produces them to the rows of the result.

#pragma once

#include "pixel_writer.hpp"
#include "resize_axis.hpp"
#include "resize_kernels.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lade::media {

// Rows of an image or plane, from the first column that the resize needs. They are asked for from
// top to bottom, a few at a time, and each stays in place while a later one is asked for that is
// fewer than resizer::rows_kept() further down.
class row_source {
 public:
  virtual const std::uint8_t* row(int y) = 0;

 protected:
  ~row_source() = default;
};

// Rows that are all in memory.
class memory_rows final : public row_source {
 public:
  memory_rows() = default;
  memory_rows(const std::uint8_t* first, std::ptrdiff_t stride) : first_(first), stride_(stride) {}
  const std::uint8_t* row(int y) override { return first_ + y * stride_; }

 private:
  const std::uint8_t* first_ = nullptr;
  std::ptrdiff_t stride_ = 0;
};

// Which part becomes width x height samples, left to right if `mirrored`.
struct resize_shape {
  axis_range x;
  axis_range y;
  int width = 0;
  int height = 0;
  bool mirrored = false;

  bool operator==(const resize_shape&) const = default;
};

// Both axes of one plane. Pictures of one size after another are planned once.
struct plane_plan {
  resize_shape shape;
  resize_axis columns;
  resize_axis rows;
  resize_blocks blocks;
  bool blocked = false;

  // False if that is the plan already.
  bool plan(const resize_shape& next);
};

// A plane that takes part in a resize: its rows, and the row of the result that each of its
// interleaved channels becomes.
struct resize_plane {
  row_source* rows = nullptr;
  const plane_plan* plan = nullptr;  // luma() or chroma() of the resizer
  int channels = 1;                  // 1 to 4
  std::array<std::uint8_t, 4> becomes{0, 1, 2, 3};
  const wide_samples* wide = nullptr;  // null: samples of 8 bits
};

// What is done to the rows of a result before they are written.
struct colour_steps {
  const colour_conversion* yuv = nullptr;  // rows 0 to 2 are Y, Cb, Cr and become R, G, B
  int expand = 0;                          // so many rows are of limited range and become full
  bool luma = false;                       // rows 0 to 2 are R, G, B; row 0 becomes their luma
};

// A resize of one image after another, reusing its tables and rows. For one thread.
class resizer {
 public:
  explicit resizer(simd level = best_simd())
      : kernels_(&resize_kernels_of(level)), pixel_kernels_(&pixel_kernels_of(level)) {}

  // Plans the only plane, or the luma. False if that is the plan already.
  bool plan(const resize_shape& next);

  // Plans the chroma planes of YUV. To be called after plan.
  void plan_chroma(const coarse_axis& x, const coarse_axis& y);

  const plane_plan& luma() const noexcept { return luma_; }
  const plane_plan& chroma() const noexcept { return chroma_; }
  int rows_kept() const noexcept { return luma_.rows.widest() + 1; }

  // Resizes planes that have all been planned. Row 3 of the result is opaque alpha, unless a plane
  // becomes it. Where only row 0 has a plane, the others equal it.
  void run(std::span<const resize_plane> planes, const colour_steps& steps, pixel_writer& out);

  // Resizes interleaved pixels of 1 or 3 channels, or planes of full-range BT.601.
  void run(row_source& pixels, int channels, pixel_writer& out);
  void run_yuv(row_source& y, row_source& cb, row_source& cr, pixel_writer& out);

 private:
  void split(int channels, int columns);
  void resize_row(const resize_plane& plane, int y);
  void blend(const resize_plane& plane, int y);
  void filter(const plane_plan& plan, const std::int16_t* in, std::uint8_t* out);
  void convert(const colour_steps& steps);
  void reserve(int columns);

  const resize_kernels* kernels_;
  const pixel_kernels* pixel_kernels_;
  plane_plan luma_;
  plane_plan chroma_;
  std::vector<const std::uint8_t*> sources_;
  std::vector<std::int16_t> blended_;
  std::array<std::vector<std::int16_t>, 4> split_;
  std::array<std::vector<std::uint8_t>, 4> filtered_;
};

}  // namespace lade::media
