// Resizes rows from a decoder to the rows of a result.

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

// Rows of an image or plane, from the first column that the resize needs. Rows are requested from
// top to bottom, a few at a time. A row must stay valid until a row is requested that is
// resizer::rows_kept() or more further down.
class row_source {
 public:
  virtual const std::uint8_t* row(int y) = 0;

 protected:
  ~row_source() = default;
};

// Rows of an image that is in memory.
class memory_rows final : public row_source {
 public:
  memory_rows() = default;
  memory_rows(const std::uint8_t* first, std::ptrdiff_t stride) : first_(first), stride_(stride) {}
  const std::uint8_t* row(int y) override { return first_ + y * stride_; }

 private:
  const std::uint8_t* first_ = nullptr;
  std::ptrdiff_t stride_ = 0;
};

// The part that becomes width x height samples. `mirrored`: left to right.
struct resize_shape {
  axis_range x;
  axis_range y;
  int width = 0;
  int height = 0;
  bool mirrored = false;

  bool operator==(const resize_shape&) const = default;
};

// The plan of a plane's axes. It is kept for successive pictures of one size.
struct plane_plan {
  resize_shape shape;
  resize_axis columns;
  resize_axis rows;
  resize_blocks blocks;
  bool blocked = false;

  // Returns false if the plan is unchanged.
  bool plan(const resize_shape& next);
};

// A plane as input of a resize: its rows, and the index of the result row for each of its
// interleaved channels.
struct resize_plane {
  row_source* rows = nullptr;
  const plane_plan* plan = nullptr;  // the resizer's luma() or chroma()
  int channels = 1;                  // 1 to 4
  std::array<std::uint8_t, 4> becomes{0, 1, 2, 3};
  const wide_samples* wide = nullptr;  // null: samples of 8 bits
};

// The conversions of result rows before they are written.
struct colour_steps {
  const colour_conversion* yuv = nullptr;  // converts rows 0 to 2 from Y, Cb, Cr to R, G, B
  int expand = 0;                          // number of rows to convert from limited to full range
  bool luma = false;                       // converts rows 0 to 2 from R, G, B to luma in row 0
};

// Resizes one image after another, and reuses its tables and rows. Not thread-safe.
class resizer {
 public:
  explicit resizer(simd level = best_simd())
      : kernels_(&resize_kernels_of(level)), pixel_kernels_(&pixel_kernels_of(level)) {}

  // Plans the only plane, or the luma. Returns false if the plan is unchanged.
  bool plan(const resize_shape& next);

  // Plans the chroma planes of YUV. Call after plan.
  void plan_chroma(const coarse_axis& x, const coarse_axis& y);

  const plane_plan& luma() const noexcept { return luma_; }
  const plane_plan& chroma() const noexcept { return chroma_; }
  int rows_kept() const noexcept { return luma_.rows.widest() + 1; }

  // Resizes planes that have been planned. Row 3 of the result is opaque alpha, unless a plane
  // provides it. If only row 0 has a plane, the other rows equal it.
  void run(std::span<const resize_plane> planes, const colour_steps& steps, pixel_writer& out);

  // Resize interleaved pixels of 1 or 3 channels, or planes of full-range BT.601.
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
