// The planes of a picture, as a resize takes them.

#pragma once

#include "picture.hpp"
#include "resizer.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace lade::media {

// The planes of a layout: how many channels each interleaves, and which of Y, Cb, Cr or of R, G, B,
// alpha each channel is.
struct layout_planes {
  struct plane {
    int channels = 0;
    std::array<std::uint8_t, 4> are{};
  };
  std::size_t count = 0;  // 0 for a layout that does not exist
  bool chroma = false;    // planes 1 and 2 may be coarser than plane 0
  std::array<plane, 3> planes{};
};
layout_planes planes_of(plane_layout layout) noexcept;

// The chroma samples along an axis of `luma` samples.
inline int chroma_size(int luma, int shift) noexcept { return (luma + (1 << shift) - 1) >> shift; }

inline int sample_bytes(const picture& of) noexcept { return of.bits > 8 ? 2 : 1; }

// What to run a resizer with that has been planned for a picture. For one call: refers to the
// picture and to the resizer.
class picture_planes {
 public:
  // `grey`: only the luma is wanted.
  picture_planes(const picture& from, const resizer& engine, bool grey);
  picture_planes(const picture_planes&) = delete;
  picture_planes& operator=(const picture_planes&) = delete;

  std::span<const resize_plane> all() const noexcept { return {planes_.data(), count_}; }
  const colour_steps& steps() const noexcept { return steps_; }

 private:
  std::size_t count_;
  std::array<memory_rows, 3> rows_;
  std::array<resize_plane, 3> planes_;
  wide_samples wide_;
  wide_samples wide_chroma_;
  colour_conversion conversion_;
  colour_steps steps_;
};

}  // namespace lade::media
