#include "../../media/pixel_kernels.hpp"
#include "kernel_levels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace lade::media::pixel_kernels_test {

class PixelKernels : public kernel_levels {
 protected:
  const pixel_kernels& tested() const { return pixel_kernels_of(GetParam()); }

  static constexpr int padding = pixel_kernels::row_padding;
};

INSTANTIATE_TEST_SUITE_P(Levels, PixelKernels, testing::Values(simd::avx2, simd::avx512),
                         name_of_level);

TEST_P(PixelKernels, ColoursAreThoseOfPlainCodeForEveryMatrixAndRange) {
  SCOPED_TRACE(seed_text);
  const int count = 1 << 16;
  const auto values = noise<std::uint8_t>(3 * (count + padding), 256);
  for (const auto matrix : {colour_matrix::bt601, colour_matrix::bt709, colour_matrix::bt2020})
    for (const bool full_range : {false, true}) {
      const auto conversion = conversion_of(matrix, full_range);
      const auto convert = [&](const pixel_kernels& by, std::vector<std::uint8_t> samples) {
        const auto stride = static_cast<std::size_t>(count + padding);
        const std::array<std::uint8_t*, 3> rows{samples.data(), samples.data() + stride,
                                                samples.data() + 2 * stride};
        by.yuv_to_rgb(rows.data(), count, conversion);
        for (auto* row : rows) std::fill_n(row + count, padding, std::uint8_t{0});
        return samples;
      };
      EXPECT_EQ(convert(tested(), values), convert(plain_pixels, values));
    }
}

TEST_P(PixelKernels, ExpansionIsThatOfPlainCode) {
  std::vector<std::uint8_t> expected(256 + padding);
  for (int i = 0; i < 256; ++i)
    expected[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(i);
  auto actual = expected;
  plain_pixels.expand(expected.data(), 256);
  tested().expand(actual.data(), 256);
  EXPECT_EQ(first_of(actual, 256), first_of(expected, 256));
}

TEST_P(PixelKernels, InterleaveWritesWhatPlainCodeDoesAndNoMore) {
  SCOPED_TRACE(seed_text);
  for (int round = 0; round < rounds; ++round) {
    const int count = 1 + below(200);
    const auto in = noise<std::uint8_t>(4 * count, 256);
    const std::array<const std::uint8_t*, 4> rows{in.data(), in.data() + count,
                                                  in.data() + 2 * count, in.data() + 3 * count};
    std::vector<std::uint8_t> expected(static_cast<std::size_t>(4 * count + padding), 7);
    auto actual = expected;
    plain_pixels.interleave(rows.data(), count, expected.data());
    tested().interleave(rows.data(), count, actual.data());
    ASSERT_EQ(actual, expected) << count;
    plain_pixels.interleave_4(rows.data(), count, expected.data());
    tested().interleave_4(rows.data(), count, actual.data());
    ASSERT_EQ(actual, expected) << count;
  }
}

TEST_P(PixelKernels, TransposedTileIsThatOfPlainCode) {
  SCOPED_TRACE(seed_text);
  const auto in = noise<std::uint8_t>(16 * 40, 256);
  std::vector<std::uint8_t> expected(16 * 50, 7);
  auto actual = expected;
  plain_pixels.transpose_16(in.data(), 40, expected.data(), 50);
  tested().transpose_16(in.data(), 40, actual.data(), 50);
  EXPECT_EQ(actual, expected);
}

TEST_P(PixelKernels, FloatsAreThoseOfPlainCodeAndNoMoreAreWritten) {
  SCOPED_TRACE(seed_text);
  for (int round = 0; round < rounds; ++round) {
    normalisation by;
    for (auto& scale : by.scale) scale = static_cast<float>(draw.uniform(-10, 10) / 255);
    for (auto& bias : by.bias) bias = static_cast<float>(draw.uniform(-10, 10));
    const int count = 1 + below(200);
    const auto in = noise<std::uint8_t>(count, 256);
    std::vector<float> expected(static_cast<std::size_t>(count + padding), 7);
    auto actual = expected;
    plain_pixels.to_f32(in.data(), count, by, expected.data());
    tested().to_f32(in.data(), count, by, actual.data());
    ASSERT_EQ(actual, expected);
    std::vector<std::uint16_t> expected_halves(static_cast<std::size_t>(count + padding), 7);
    auto actual_halves = expected_halves;
    plain_pixels.to_f16(in.data(), count, by, expected_halves.data());
    tested().to_f16(in.data(), count, by, actual_halves.data());
    ASSERT_EQ(actual_halves, expected_halves);
    plain_pixels.to_bf16(in.data(), count, by, expected_halves.data());
    tested().to_bf16(in.data(), count, by, actual_halves.data());
    ASSERT_EQ(actual_halves, expected_halves);
  }
}

TEST_P(PixelKernels, HalvesRoundToNearestEvenAtEveryMagnitude) {
  SCOPED_TRACE(seed_text);
  for (int exponent = -30; exponent <= 20; ++exponent) {
    normalisation by;
    by.scale.fill(static_cast<float>(std::ldexp(1 + below(4096) / 4096.0, exponent)));
    by.bias.fill(0);
    const auto in = noise<std::uint8_t>(96, 256);
    std::vector<std::uint16_t> expected(96);
    auto actual = expected;
    plain_pixels.to_f16(in.data(), 96, by, expected.data());
    tested().to_f16(in.data(), 96, by, actual.data());
    ASSERT_EQ(actual, expected) << exponent;
  }
}

static std::uint16_t plain_f16(float value) {
  normalisation by{};
  by.bias[0] = value;
  const std::uint8_t zero = 0;
  std::uint16_t half = 0;
  plain_pixels.to_f16(&zero, 1, by, &half);
  return half;
}

static std::uint16_t plain_bf16(float value) {
  normalisation by{};
  by.bias[0] = value;
  const std::uint8_t zero = 0;
  std::uint16_t half = 0;
  plain_pixels.to_bf16(&zero, 1, by, &half);
  return half;
}

TEST(Halves, TiesGoToTheEvenNeighbour) {
  EXPECT_EQ(plain_f16(1), 0x3c00);
  EXPECT_EQ(plain_f16(1 + 0x1p-11F), 0x3c00);
  EXPECT_EQ(plain_f16(1 + 3 * 0x1p-11F), 0x3c02);
  EXPECT_EQ(plain_f16(-2), 0xc000);
  EXPECT_EQ(plain_f16(65504), 0x7bff);
  EXPECT_EQ(plain_f16(65520), 0x7c00);
  EXPECT_EQ(plain_f16(0x1p-24F), 1);
  EXPECT_EQ(plain_f16(0x1p-25F), 0);
  EXPECT_EQ(plain_f16(3 * 0x1p-25F), 2);
  EXPECT_EQ(plain_bf16(1), 0x3f80);
  EXPECT_EQ(plain_bf16(1 + 0x1p-8F), 0x3f80);
  EXPECT_EQ(plain_bf16(1 + 3 * 0x1p-8F), 0x3f82);
}

}  // namespace lade::media::pixel_kernels_test
