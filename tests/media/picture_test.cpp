#include "../../media/picture.hpp"
#include "../support/seed.hpp"
#include "raw_pictures.hpp"
#include "swscale.hpp"

#include <lade/error.hpp>
#include <lade/random.hpp>
#include <lade/tensor.hpp>

#include <gtest/gtest.h>

#include <string>

namespace lade::media {

static tensor rgb_of(const picture& from) {
  tensor out(element_type::u8, {from.height, from.width, 3});
  write_picture(from, whole_picture(from),
                {.data = out.bytes(), .width = from.width, .height = from.height});
  return out;
}

// Every matrix and range of one kind of picture, of noise and of smooth gradients.
static void compare_with_swscale(const picture& kind, int most) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  for (const auto matrix : {colour_matrix::bt601, colour_matrix::bt709, colour_matrix::bt2020})
    for (const bool full_range : {false, true})
      for (const bool smooth : {false, true}) {
        picture like = kind;
        like.matrix = matrix;
        like.full_range = full_range;
        const raw_picture raw(like, draw, smooth);
        SCOPED_TRACE(swscale_options(raw.get()) + (smooth ? ", smooth" : ", noise"));
        EXPECT_LE(difference(rgb_of(raw.get()), swscale(raw)), most);
      }
}

class SubsampledPicture : public testing::TestWithParam<picture> {};

TEST_P(SubsampledPicture, DiffersFromSwscaleByAtMostTwo) {
  if (!have_ffmpeg()) GTEST_SKIP() << "no ffmpeg";
  compare_with_swscale(GetParam(), 2);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, SubsampledPicture,
    testing::Values(picture{.width = 64, .height = 48, .chroma_shift_x = 0, .chroma_shift_y = 0},
                    picture{.width = 96, .height = 50, .chroma_shift_x = 1, .chroma_shift_y = 0},
                    picture{.width = 130, .height = 76, .siting = left_siting},
                    picture{.width = 130, .height = 76, .siting = centre_siting},
                    picture{.width = 130, .height = 76, .siting = top_left_siting}));

}  // namespace lade::media
