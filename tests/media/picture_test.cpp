#include "../../media/picture.hpp"
#include "../../media/decoders.hpp"
#include "../support/guarded_row.hpp"
#include "images.hpp"
#include "naive_picture.hpp"
#include "picture_fixture.hpp"
#include "raw_pictures.hpp"

#include <lade/error.hpp>
#include <lade/tensor.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lade::media::picture_test {

using testing::HasSubstr;

TEST_F(Picture, PartOfAnySizeIsThatOfExactArithmetic) {
  for (int round = 0; round < 60; ++round) {
    auto like = any_yuv();
    like.bits = 8 + below(2) * below(9);
    const raw_picture raw(like, draw_, false);
    const auto view = any_part_of(raw.get());
    const int width = 1 + below(60);
    const int height = 1 + below(60);
    ASSERT_LE(
        difference(written(raw.get(), view, width, height), naive_rgb(raw, view, width, height)),
        2);
    ASSERT_LE(difference(written(raw.get(), view, width, height, 1),
                         naive_grey(raw, view, width, height)),
              1);
  }
}

TEST_F(Picture, SameSamplesInAnotherLayoutBecomeTheSamePixels) {
  for (int round = 0; round < 60; ++round) {
    const raw_picture raw(any_yuv(), draw_, false);
    const auto view = any_part_of(raw.get());
    const auto expected = written(raw.get(), view, 17, 13);
    for (const auto layout : {plane_layout::y_cbcr, plane_layout::y_crcb}) {
      const raw_picture other(raw, layout, 8, 0);
      ASSERT_EQ(difference(written(other.get(), view, 17, 13), expected), 0);
    }
  }
}

TEST_F(Picture, SamplesInUpperBitsOfWordsAreThoseInLowerBits) {
  for (int round = 0; round < 60; ++round) {
    auto like = any_yuv();
    like.bits = 9 + below(7);
    const raw_picture raw(like, draw_, false);
    const auto view = any_part_of(raw.get());
    const raw_picture other(raw, plane_layout::y_cbcr, like.bits, 16 - like.bits);
    ASSERT_EQ(difference(written(other.get(), view, 17, 13), written(raw.get(), view, 17, 13)), 0);
  }
}

TEST_F(Picture, WordsWithoutMoreThanEightBitsAreBytes) {
  for (int round = 0; round < 60; ++round) {
    auto like = any_yuv();
    like.full_range = false;
    const raw_picture raw(like, draw_, false);
    const auto view = any_part_of(raw.get());
    const raw_picture words(raw, plane_layout::y_cb_cr, 16, 0);
    ASSERT_EQ(difference(written(words.get(), view, 17, 13), written(raw.get(), view, 17, 13)), 0);
  }
}

TEST_F(Picture, LayoutsOfRgbBecomeTheSamePixels) {
  for (const bool full_range : {false, true}) {
    const raw_picture rgb(
        {.width = 50, .height = 40, .layout = plane_layout::rgb, .full_range = full_range}, draw_,
        false);
    const auto view = any_part_of(rgb.get());
    const auto expected = written(rgb.get(), view, 17, 13);
    for (const auto layout :
         {plane_layout::g_b_r, plane_layout::bgr, plane_layout::rgba, plane_layout::bgra}) {
      const raw_picture other(rgb, layout, 8, 0);
      EXPECT_EQ(difference(written(other.get(), view, 17, 13), expected), 0);
    }
    if (full_range) continue;
    const raw_picture words(rgb, plane_layout::g_b_r, 12, 4);
    EXPECT_EQ(difference(written(words.get(), view, 17, 13), expected), 0);
  }
}

TEST_F(Picture, GreyOfRgbIsItsLuma) {
  for (const bool full_range : {false, true}) {
    const raw_picture raw(
        {.width = 50, .height = 40, .layout = plane_layout::g_b_r, .full_range = full_range}, draw_,
        false);
    const auto view = any_part_of(raw.get());
    const auto rgb = written(raw.get(), view, 19, 11);
    const auto grey = written(raw.get(), view, 19, 11, 1);
    for (int i = 0; i < 11 * 19; ++i) {
      const auto* pixel = rgb.data<std::uint8_t>() + 3 * i;
      ASSERT_NEAR(grey.data<std::uint8_t>()[i],
                  0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2], 0.51);
    }
  }
}

TEST_F(Picture, HighestAndLowestCodesOfEveryDepthAreWhiteAndBlack) {
  for (int bits = 8; bits <= 16; ++bits)
    for (const bool full_range : {false, true})
      for (const bool white : {false, true}) {
        const int step = 1 << (bits - 8);
        const int luma = full_range ? (white ? 256 * step - 1 : 0) : (white ? 235 : 16) * step;
        const raw_picture raw({.width = 40, .height = 3, .bits = bits, .full_range = full_range},
                              luma, 128 * step);
        const auto rgb = rgb_of(raw.get());
        for (int i = 0; i < 40 * 3 * 3; ++i)
          ASSERT_EQ(rgb.data<std::uint8_t>()[i], white ? 255 : 0) << bits << " bits";
      }
}

static tensor channel_of(const tensor& pixels, int channel) {
  const auto height = pixels.shape()[0], width = pixels.shape()[1], channels = pixels.shape()[2];
  tensor plane(element_type::u8, {height, width, 1});
  for (std::int64_t i = 0; i < height * width; ++i)
    plane.data<std::uint8_t>()[i] = pixels.data<std::uint8_t>()[i * channels + channel];
  return plane;
}

TEST_F(Picture, ChannelsComeInTheOrderOfTheTarget) {
  const raw_picture raw(any_yuv(), draw_, false);
  const auto view = any_part_of(raw.get());
  const auto rgb = written(raw.get(), view, 19, 11);
  tensor bgr(element_type::u8, {11, 19, 3});
  auto target = target_in(bgr);
  target.bgr = true;
  write_picture(raw.get(), view, target);
  const auto rgba = written(raw.get(), view, 19, 11, 4);
  for (int c = 0; c < 3; ++c) {
    EXPECT_EQ(difference(channel_of(bgr, 2 - c), channel_of(rgb, c)), 0);
    EXPECT_EQ(difference(channel_of(rgba, c), channel_of(rgb, c)), 0);
  }
  for (int i = 3; i < 11 * 19 * 4; i += 4) ASSERT_EQ(rgba.data<std::uint8_t>()[i], 255);
}

TEST_F(Picture, AlphaIsResizedLikeAColour) {
  const picture like{.width = 50, .height = 40, .layout = plane_layout::rgba, .full_range = true};
  const raw_picture rgba(like, draw_, false);
  const auto pixels = written(rgba.get(), whole_picture(like), 50, 40, 4);
  for (int y = 0; y < 40; ++y)
    for (int x = 0; x < 50; ++x)
      ASSERT_EQ(pixels.data<std::uint8_t>()[4 * (50 * y + x) + 3], rgba.sample(x, y, 3));
  auto alpha = rgba.get();
  alpha.layout = plane_layout::grey;
  const auto view = any_part_of(like);
  const raw_picture planes(rgba, plane_layout::g_b_r_a, 8, 0);
  alpha.planes[0] = planes.get().planes[3];
  EXPECT_EQ(difference(channel_of(written(rgba.get(), view, 19, 11, 4), 3),
                       written(alpha, view, 19, 11, 1)),
            0);
}

TEST_F(Picture, PlanesOfAlphaAreOfFullRangeAtEveryDepth) {
  for (int bits = 8; bits <= 16; ++bits) {
    const raw_picture opaque(
        {.width = 33, .height = 9, .layout = plane_layout::y_cb_cr, .bits = bits}, draw_, false);
    const raw_picture black(opaque, plane_layout::y_cb_cr_a, bits, 0);
    auto white = black.get();
    const std::vector<std::uint16_t> most(33 * 9, static_cast<std::uint16_t>((1 << bits) - 1));
    const std::vector<std::uint8_t> most_byte(33 * 9, 255);
    white.planes[3].data =
        bits == 8 ? most_byte.data() : reinterpret_cast<const std::uint8_t*>(most.data());
    const auto view = any_part_of(white);
    const auto expected = written(opaque.get(), view, 17, 5, 4);
    EXPECT_EQ(difference(written(white, view, 17, 5, 4), expected), 0) << bits;
    EXPECT_EQ(difference(written(black.get(), view, 17, 5), written(white, view, 17, 5)), 0);
    const auto transparent = channel_of(written(black.get(), view, 17, 5, 4), 3);
    for (int i = 0; i < 17 * 5; ++i) ASSERT_EQ(transparent.data<std::uint8_t>()[i], 0);
  }
}

TEST_F(Picture, FramesOfAClipAreWrittenBetweenEachOther) {
  constexpr int frames = 3, height = 7, width = 10;
  tensor clip(element_type::u8, {3, frames, height, width});
  std::vector<tensor> expected;
  for (int t = 0; t < frames; ++t) {
    const raw_picture raw(any_yuv(), draw_, false);
    const auto view = any_part_of(raw.get());
    expected.push_back(written(raw.get(), view, width, height));
    write_picture(raw.get(), view,
                  {.data = clip.bytes() + t * height * width,
                   .width = width,
                   .height = height,
                   .layout = image_layout::chw,
                   .plane_stride = frames * height * width});
  }
  const auto* element = clip.data<std::uint8_t>();
  for (int c = 0; c < 3; ++c)
    for (const auto& frame : expected)
      for (int i = 0; i < height * width; ++i)
        ASSERT_EQ(*element++, frame.data<std::uint8_t>()[3 * i + c]);
}

TEST_F(Picture, FloatsAreTheNormalisedBytesInAnyLayout) {
  const raw_picture raw(any_yuv(), draw_, false);
  const auto view = any_part_of(raw.get());
  const auto bytes = written(raw.get(), view, 19, 11, 4);
  for (const auto layout : {image_layout::hwc, image_layout::chw}) {
    tensor floats(element_type::f32, {11, 19, 4});
    auto target = target_in(floats);
    target.type = element_type::f32;
    target.layout = layout;
    target.mean = imagenet_mean;
    target.stddev = imagenet_stddev;
    write_picture(raw.get(), view, target);
    for (std::size_t i = 0; i < 11 * 19; ++i)
      for (std::size_t c = 0; c < 4; ++c) {
        const double value = bytes.data<std::uint8_t>()[4 * i + c] / 255.0;
        const auto at = layout == image_layout::hwc ? 4 * i + c : 11 * 19 * c + i;
        const double expected = c == 3 ? value : (value - imagenet_mean[c]) / imagenet_stddev[c];
        ASSERT_NEAR(floats.data<float>()[at], expected, 1e-5);
      }
  }
}

TEST_F(Picture, TurnedIsThatOfTheTurnedResult) {
  const raw_picture raw(any_yuv(), draw_, false);
  for (int exif = 1; exif <= 8; ++exif) {
    auto view = any_part_of(raw.get());
    const auto upright = written(raw.get(), view, 19, 11);
    view.turn = orientation_of(exif);
    const bool transposed = view.turn.transposed;
    const auto turned = written(raw.get(), view, transposed ? 11 : 19, transposed ? 19 : 11);
    for (int y = 0; y < 11; ++y)
      for (int x = 0; x < 19; ++x) {
        const int column = view.turn.mirror_x ? 18 - x : x;
        const int row = view.turn.mirror_y ? 10 - y : y;
        const int pixel = transposed ? column * 11 + row : row * 19 + column;
        for (int c = 0; c < 3; ++c)
          ASSERT_EQ(turned.data<std::uint8_t>()[3 * pixel + c],
                    upright.data<std::uint8_t>()[3 * (19 * y + x) + c])
              << "orientation " << exif;
      }
  }
}

TEST_F(Picture, OnlyRowsThatAreNeededAreReadAndNothingBehindThem) {
  for (int round = 0; round < 100; ++round) {
    const raw_picture raw(any_yuv(), draw_, false);
    auto view = whole_picture(raw.get());
    view.y.high = 1 + below(raw.get().height);
    view.y.length = view.y.high;
    const auto expected = written(raw.get(), view, 9, 7);
    auto guarded = raw.get();
    std::vector<std::unique_ptr<test::guarded_row<std::uint8_t>>> rows;
    for (std::size_t p = 0; p < 3; ++p) {
      const int count = p == 0 ? view.y.high : chroma_size(view.y.high, guarded.chroma_shift_y);
      const auto* first = raw.get().planes[p].data;
      rows.push_back(std::make_unique<test::guarded_row<std::uint8_t>>(
          std::vector<std::uint8_t>(first, first + count * raw.get().planes[p].stride)));
      guarded.planes[p].data = rows.back()->data();
    }
    ASSERT_EQ(difference(written(guarded, view, 9, 7), expected), 0);
  }
}

TEST_F(Picture, TablesAreKeptForTheNextEqualPicture) {
  const picture like{.width = 90, .height = 60};
  rgb_of(raw_picture(like, draw_, false).get());
  const auto is_kept = [] {
    const used_decoders used;
    auto& engine = used->lanes[0].resize;
    plane_plan chroma = engine.chroma();
    return !engine.plan(engine.luma().shape) && !chroma.plan(engine.chroma().shape);
  };
  EXPECT_TRUE(is_kept());
  rgb_of(raw_picture(like, draw_, false).get());
  EXPECT_TRUE(is_kept());
}

// What write_picture throws for a small picture with one change.
template <class F>
static std::string failure_of(F change) {
  std::vector<std::uint8_t> samples(16 * 16, 99);
  tensor out(element_type::u8, {4, 4, 3});
  picture from{.width = 16, .height = 16};
  for (auto& plane : from.planes) plane = {samples.data(), 16};
  auto view = whole_picture(from);
  auto to = target_in(out);
  change(from, view, to);
  try {
    write_picture(from, view, to);
  } catch (const error& failure) {
    return (failure.code() == errc::unsupported ? "unsupported: " : "invalid: ") +
           std::string(failure.what());
  }
  return "nothing";
}

TEST(PictureErrors, ProportionsThatNoPixelsHaveAreRefusedWhereTheyAreUsed) {
  std::vector<std::uint8_t> samples(16 * 16, 99);
  const tensor out(element_type::u8, {4, 4, 3});
  for (const double aspect : {std::nan(""), 0.0, -1.0, 1e9}) {
    picture from{.width = 16, .height = 16, .pixel_aspect = aspect};
    for (auto& plane : from.planes) plane = {samples.data(), 16};
    EXPECT_THAT([&] { write_picture(from, {.square_pixels = true}, out); },
                testing::ThrowsMessage<error>(testing::HasSubstr("pixel_aspect must be")));
    write_picture(from, {}, out);
  }
}

TEST(PictureErrors, UnsupportedKindsAreNamed) {
  EXPECT_EQ(failure_of([](auto& from, auto&, auto&) { from.bits = 17; }),
            "unsupported: write picture: 17 bits per sample");
  EXPECT_EQ(failure_of([](auto& from, auto&, auto&) {
              from.layout = plane_layout::rgb;
              from.bits = 10;
            }),
            "unsupported: write picture: 10 bits per packed sample");
  EXPECT_EQ(failure_of([](auto& from, auto&, auto&) { from.chroma_shift_x = 3; }),
            "unsupported: write picture: chroma shifts of 3 and 1");
  EXPECT_EQ(failure_of([](auto& from, auto&, auto&) { from.shift = 1; }),
            "unsupported: write picture: 1 unused bits below 8 significant ones");
  EXPECT_EQ(failure_of([](auto&, auto&, auto& to) { to.channels = 2; }),
            "unsupported: write picture: a result of 2 channels");
  EXPECT_EQ(failure_of([](auto&, auto&, auto& to) { to.type = element_type::i64; }),
            "unsupported: write picture: a result of i64");
}

TEST(PictureErrors, ImpossibleArgumentsAreNamed) {
  EXPECT_EQ(failure_of([](auto&, auto&, auto&) {}), "nothing");
  EXPECT_THAT(failure_of([](auto& from, auto&, auto&) { from.width = 32769; }),
              HasSubstr("invalid: write picture: the picture is 32769 x 16"));
  EXPECT_THAT(failure_of([](auto& from, auto&, auto&) { from.height = 0; }),
              HasSubstr("the picture is 16 x 0"));
  EXPECT_THAT(failure_of([](auto& from, auto&, auto&) { from.planes[2].data = nullptr; }),
              HasSubstr("plane 2 has no data"));
  EXPECT_THAT(failure_of([](auto& from, auto&, auto&) { from.planes[1].stride = 7; }),
              HasSubstr("plane 1 has no data, or rows that overlap"));
  EXPECT_THAT(failure_of([](auto&, auto& view, auto&) { view.x.begin = 1; }), HasSubstr("x does"));
  EXPECT_THAT(failure_of([](auto&, auto& view, auto&) { view.y.length = std::nan(""); }),
              HasSubstr("y does not"));
  EXPECT_THAT(failure_of([](auto&, auto&, auto& to) { to.width = 40000; }),
              HasSubstr("1 to 32768"));
  EXPECT_THAT(failure_of([](auto&, auto&, auto& to) { to.plane_stride = 15; }),
              HasSubstr("the planes of the result overlap"));
  EXPECT_THAT(failure_of([](auto&, auto&, auto& to) { to.stddev[1] = 0; }),
              HasSubstr("stddev not 0"));
}

}  // namespace lade::media::picture_test
