// Pictures of random kinds, and what is written of them.

#pragma once

#include "../../media/picture.hpp"
#include "../support/seed.hpp"

#include <lade/random.hpp>
#include <lade/tensor.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

namespace lade::media {

inline pixel_target target_in(const tensor& out) {
  return {.data = out.bytes(),
          .width = static_cast<int>(out.shape()[1]),
          .height = static_cast<int>(out.shape()[0]),
          .channels = static_cast<int>(out.shape()[2])};
}

inline tensor written(const picture& from, const picture_view& view, int width, int height,
                      int channels = 3) {
  tensor out(element_type::u8, {height, width, channels});
  write_picture(from, view, target_in(out));
  return out;
}

// The whole picture, not turned.
inline picture_view whole_picture(const picture& from) noexcept {
  return {.x = {0, static_cast<double>(from.width), 0, from.width},
          .y = {0, static_cast<double>(from.height), 0, from.height},
          .turn = {}};
}

inline tensor rgb_of(const picture& from) {
  return written(from, whole_picture(from), from.width, from.height);
}

// Draws pictures from a seed that a failure prints.
class Picture : public testing::Test {
 protected:
  int below(int bound) { return static_cast<int>(draw_.below(static_cast<std::uint64_t>(bound))); }

  // A small picture of 8 bits with any chroma, siting, matrix and range.
  picture any_yuv() {
    static constexpr std::array<std::array<int, 2>, 6> shifts{
        {{0, 0}, {1, 0}, {1, 1}, {0, 1}, {2, 0}, {2, 2}}};
    const auto [x, y] = shifts[draw_.below(shifts.size())];
    return {.width = 1 + below(90),
            .height = 1 + below(90),
            .chroma_shift_x = x,
            .chroma_shift_y = y,
            .siting = {static_cast<chroma_site>(below(3)), static_cast<chroma_site>(below(3))},
            .matrix = static_cast<colour_matrix>(below(3)),
            .full_range = below(2) == 1};
  }

  picture_view any_part_of(const picture& from) {
    auto view = whole_picture(from);
    for (auto* axis : {&view.x, &view.y}) {
      axis->begin = draw_.uniform(0, axis->length);
      axis->length = draw_.uniform(0.01, 0.99) * (axis->length - axis->begin);
    }
    return view;
  }

  std::uint64_t seed_ = test::new_seed();
  testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};
  random draw_{seed_};
};

}  // namespace lade::media
