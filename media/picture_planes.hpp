// The planes of a picture as inputs of a resizer.

#pragma once

#include "picture.hpp"
#include "resizer.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace lade::media {

// The planes of a layout. Each has a number of interleaved channels. `are`: the index of each
// channel in Y, Cb, Cr, or in R, G, B, alpha.
struct layout_planes {
  struct plane {
    int channels = 0;
    std::array<std::uint8_t, 4> are{};
  };
  std::size_t count = 0;  // 0 for an invalid layout
  bool chroma = false;    // planes 1 and 2 may be subsampled
  std::array<plane, 4> planes{};

  bool is_chroma(std::size_t p) const noexcept { return chroma && (p == 1 || p == 2); }
};
layout_planes planes_of(plane_layout layout) noexcept;

// The number of chroma samples along an axis of `luma` samples.
inline int chroma_size(int luma, int shift) noexcept { return (luma + (1 << shift) - 1) >> shift; }

inline int sample_bytes(const picture& picture) noexcept { return picture.bits > 8 ? 2 : 1; }

// The arguments of resizer::run for a picture, after the resizer has been planned for it. For one
// call: refers to the picture and to the resizer.
class picture_planes {
 public:
  // `channels`: of the target. Planes that the target does not need are omitted.
  picture_planes(const picture& from, const resizer& engine, int channels);
  picture_planes(const picture_planes&) = delete;
  picture_planes& operator=(const picture_planes&) = delete;

  std::span<const resize_plane> all() const noexcept { return {planes_.data(), count_}; }
  const colour_steps& steps() const noexcept { return steps_; }

 private:
  void add(const picture& from, std::size_t p, const plane_plan& plan);

  std::size_t count_ = 0;
  std::array<memory_rows, 4> rows_;
  std::array<resize_plane, 4> planes_;
  std::array<wide_samples, 4> wide_;
  colour_conversion conversion_;
  colour_steps steps_;
};

}  // namespace lade::media
