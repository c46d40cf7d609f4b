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
  std::array<plane, 4> planes{};

  bool is_chroma(std::size_t p) const noexcept { return chroma && (p == 1 || p == 2); }
};
layout_planes planes_of(plane_layout layout) noexcept;

// The chroma samples along an axis of `luma` samples.
inline int chroma_size(int luma, int shift) noexcept { return (luma + (1 << shift) - 1) >> shift; }

inline int sample_bytes(const picture& picture) noexcept { return picture.bits > 8 ? 2 : 1; }

// What to run a resizer with that has been planned for a picture. For one call: refers to the
// picture and to the resizer.
class picture_planes {
 public:
  // For a target of so many channels. Planes that none of them needs are left out.
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
