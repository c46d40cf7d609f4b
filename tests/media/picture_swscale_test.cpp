// Pictures at their own size against FFmpeg's conversion.

#include "picture_fixture.hpp"
#include "raw_pictures.hpp"
#include "swscale.hpp"

#include <gtest/gtest.h>

namespace lade::media::picture_swscale_test {

class PictureKind : public Picture, public testing::WithParamInterface<picture> {};

TEST_P(PictureKind, DiffersFromSwscaleByAtMostTwo) {
  if (!have_ffmpeg()) GTEST_SKIP() << "no ffmpeg";
  for (const auto matrix : {colour_matrix::bt601, colour_matrix::bt709, colour_matrix::bt2020})
    for (const bool full_range : {false, true})
      for (const bool smooth : {false, true}) {
        // Of full range with more bits, swscale takes the upper 8: its white is up to 255.99.
        if (full_range && GetParam().bits > 8) continue;
        picture like = GetParam();
        like.matrix = matrix;
        like.full_range = full_range;
        const raw_picture raw(like, draw_, smooth);
        SCOPED_TRACE(swscale_options(raw.get()) + (smooth ? ", smooth" : ", noise"));
        EXPECT_LE(difference(rgb_of(raw.get()), swscale(raw)), 2);
      }
}

INSTANTIATE_TEST_SUITE_P(
    Swscale, PictureKind,
    testing::Values(
        picture{.width = 64, .height = 48, .chroma_shift_x = 0, .chroma_shift_y = 0},
        picture{.width = 96, .height = 50, .chroma_shift_x = 1, .chroma_shift_y = 0},
        picture{.width = 130, .height = 76, .siting = left_siting},
        picture{.width = 130, .height = 76, .siting = centre_siting},
        picture{.width = 130, .height = 76, .siting = top_left_siting},
        picture{.width = 64, .height = 50, .chroma_shift_x = 0, .chroma_shift_y = 1},
        picture{.width = 64, .height = 48, .chroma_shift_x = 2, .chroma_shift_y = 0},
        picture{.width = 64, .height = 48, .chroma_shift_x = 2, .chroma_shift_y = 2},
        picture{.width = 130, .height = 76, .layout = plane_layout::y_cb_cr_a},
        picture{.width = 130, .height = 76, .layout = plane_layout::y_cbcr},
        picture{.width = 130, .height = 76, .layout = plane_layout::y_crcb},
        picture{.width = 130, .height = 76, .bits = 9},
        picture{.width = 130, .height = 76, .bits = 10},
        picture{.width = 130, .height = 76, .bits = 12},
        picture{.width = 130, .height = 76, .bits = 16},
        picture{.width = 96, .height = 50, .bits = 10, .chroma_shift_x = 0, .chroma_shift_y = 0},
        picture{.width = 130, .height = 76, .layout = plane_layout::y_cbcr, .bits = 10, .shift = 6},
        picture{.width = 130, .height = 76, .layout = plane_layout::y_cbcr, .bits = 16}),
    [](const auto& kind) { return name_of_kind(kind.param); });

class FullRangeKind : public PictureKind {};

TEST_P(FullRangeKind, DiffersFromSwscaleByAtMostOne) {
  if (!have_ffmpeg()) GTEST_SKIP() << "no ffmpeg";
  picture like = GetParam();
  like.full_range = true;
  const raw_picture raw(like, draw_, false);
  EXPECT_LE(difference(rgb_of(raw.get()), swscale(raw)), 1);
}

INSTANTIATE_TEST_SUITE_P(
    Swscale, FullRangeKind,
    testing::Values(picture{.width = 61, .height = 47, .layout = plane_layout::grey},
                    picture{.width = 61, .height = 47, .layout = plane_layout::grey, .bits = 10},
                    picture{.width = 61, .height = 47, .layout = plane_layout::g_b_r},
                    picture{.width = 61, .height = 47, .layout = plane_layout::rgb},
                    picture{.width = 61, .height = 47, .layout = plane_layout::bgr},
                    picture{.width = 61, .height = 47, .layout = plane_layout::rgba},
                    picture{.width = 61, .height = 47, .layout = plane_layout::bgra}),
    [](const auto& kind) { return name_of_kind(kind.param); });

}  // namespace lade::media::picture_swscale_test
