#include "../../media/resize_kernels.hpp"
#include "../support/guarded_row.hpp"
#include "../support/seed.hpp"

#include <lade/random.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

namespace lade::media {

using testing::ElementsAreArray;

// Every level that this machine has beyond plain C++, each compared with that on random input.
class ResizeKernels : public testing::TestWithParam<simd> {
 protected:
  void SetUp() override {
    if (GetParam() > best_simd()) GTEST_SKIP() << "not on this machine";
    const auto seed = test::new_seed();
    RecordProperty("seed", std::to_string(seed));
    draw = random(seed);
    seed_text = "seed " + std::to_string(seed);
  }

  int below(int bound) { return static_cast<int>(draw.below(static_cast<std::uint64_t>(bound))); }

  template <class T>
  std::vector<T> noise(int count, int bound) {
    std::vector<T> values(static_cast<std::size_t>(count));
    for (auto& value : values) value = static_cast<T>(below(bound));
    return values;
  }

  // The rows end with their padding, before memory that may not be read.
  void compare_filters(const resize_axis& axis) {
    resize_blocks blocks;
    const bool blocked = blocks.plan(axis);
    test::guarded_row in(noise<std::int16_t>(axis.last() - axis.first() + padding, 16321));
    std::vector<std::uint8_t> expected(static_cast<std::size_t>(axis.count() + padding));
    auto actual = expected;
    plain_kernels.filter(in.data(), axis, nullptr, expected.data());
    tested().filter(in.data(), axis, blocked ? &blocks : nullptr, actual.data());
    expected.resize(static_cast<std::size_t>(axis.count()));
    actual.resize(expected.size());
    ASSERT_EQ(actual, expected) << axis.count() << " of " << axis.last() - axis.first();
  }

  const resize_kernels& tested() const { return kernels(GetParam()); }

  static constexpr int rounds = 300;
  static constexpr int padding = resize_kernels::row_padding;
  random draw;
  std::string seed_text;
};

INSTANTIATE_TEST_SUITE_P(Levels, ResizeKernels, testing::Values(simd::avx2, simd::avx512),
                         [](const auto& level) {
                           return level.param == simd::avx2 ? "Avx2" : "Avx512";
                         });

template <class T>
static std::vector<T> first_of(const std::vector<T>& values, int count) {
  return {values.begin(), values.begin() + count};
}

TEST_P(ResizeKernels, BlendIsThatOfPlainCode) {
  SCOPED_TRACE(seed_text);
  for (int round = 0; round < rounds; ++round) {
    resize_axis axis;
    const int size = 1 + below(300);
    axis.plan({0, double(size), 0, size}, 1 + below(300));
    const int count = 1 + below(500);
    const int y = below(axis.count());
    const auto memory = noise<std::uint8_t>(count * (axis.taps(y) + 1), 256);
    std::vector<const std::uint8_t*> rows;
    for (int k = 0; k <= axis.taps(y); ++k) rows.push_back(memory.data() + k * count);
    std::vector<std::int16_t> expected(static_cast<std::size_t>(count + padding));
    auto actual = expected;
    plain_kernels.blend(rows.data(), axis.weights(y), axis.taps(y), count, expected.data());
    tested().blend(rows.data(), axis.weights(y), axis.taps(y), count, actual.data());
    ASSERT_THAT(first_of(actual, count), ElementsAreArray(first_of(expected, count)));
  }
}

TEST_P(ResizeKernels, SplitIsThatOfPlainCode) {
  SCOPED_TRACE(seed_text);
  for (int round = 0; round < rounds; ++round) {
    const int count = 1 + below(200);
    const auto in = noise<std::int16_t>(3 * count + 2 * padding, 16321);
    std::vector<std::int16_t> expected(static_cast<std::size_t>(3 * (count + padding)));
    auto actual = expected;
    const auto split = [&](const resize_kernels& by, std::vector<std::int16_t>& out) {
      const auto stride = static_cast<std::size_t>(count + padding);
      const std::array<std::int16_t*, 3> rows{out.data(), out.data() + stride,
                                              out.data() + 2 * stride};
      by.split(in.data(), count, rows.data());
      for (auto* row : rows) std::fill_n(row + count, padding, std::int16_t{0});
    };
    split(plain_kernels, expected);
    split(tested(), actual);
    ASSERT_THAT(actual, ElementsAreArray(expected));
  }
}

TEST_P(ResizeKernels, FilterIsThatOfPlainCodeForAnyScaleAndDirection) {
  SCOPED_TRACE(seed_text);
  for (int round = 0; round < rounds; ++round) {
    const int size = 1 + below(600);
    const int low = below(size);
    const int high = low + 1 + below(size - low);
    const double begin = draw.uniform(low, high);
    resize_axis axis;
    axis.plan({begin, draw.uniform(0, high - begin), low, high}, 1 + below(300), below(2) == 1);
    ASSERT_NO_FATAL_FAILURE(compare_filters(axis));
  }
}

TEST_P(ResizeKernels, FilterOfWideRowsIsThatOfPlainCodeAndReadsNoMoreThanThePadding) {
  SCOPED_TRACE(seed_text);
  for (int round = 0; round < rounds; ++round) {
    const int size = 1 + below(12000);
    const int cut = below(2) * below(size);
    resize_axis axis;
    axis.plan({double(cut), double(size - cut), below(2) * cut, size}, 1 + below(64),
              below(2) == 1);
    ASSERT_NO_FATAL_FAILURE(compare_filters(axis));
  }
}

TEST_P(ResizeKernels, ColoursAreThoseOfPlainCodeForEveryMatrixAndRange) {
  SCOPED_TRACE(seed_text);
  const int count = 1 << 16;
  const auto values = noise<std::uint8_t>(3 * (count + padding), 256);
  for (const auto matrix : {colour_matrix::bt601, colour_matrix::bt709, colour_matrix::bt2020})
    for (const bool full_range : {false, true}) {
      const auto conversion = conversion_of(matrix, full_range);
      const auto convert = [&](const resize_kernels& by, std::vector<std::uint8_t> samples) {
        const auto stride = static_cast<std::size_t>(count + padding);
        const std::array<std::uint8_t*, 3> rows{samples.data(), samples.data() + stride,
                                                samples.data() + 2 * stride};
        by.yuv_to_rgb(rows.data(), count, conversion);
        for (auto* row : rows) std::fill_n(row + count, padding, std::uint8_t{0});
        return samples;
      };
      EXPECT_EQ(convert(tested(), values), convert(plain_kernels, values));
    }
}

TEST_P(ResizeKernels, ExpansionIsThatOfPlainCode) {
  std::vector<std::uint8_t> expected(256 + padding);
  for (int i = 0; i < 256; ++i)
    expected[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(i);
  auto actual = expected;
  plain_kernels.expand(expected.data(), 256);
  tested().expand(actual.data(), 256);
  EXPECT_EQ(first_of(actual, 256), first_of(expected, 256));
}

TEST_P(ResizeKernels, InterleaveWritesWhatPlainCodeDoesAndNoMore) {
  SCOPED_TRACE(seed_text);
  for (int round = 0; round < rounds; ++round) {
    const int count = 1 + below(200);
    const auto in = noise<std::uint8_t>(4 * count, 256);
    const std::array<const std::uint8_t*, 4> rows{in.data(), in.data() + count,
                                                  in.data() + 2 * count, in.data() + 3 * count};
    std::vector<std::uint8_t> expected(static_cast<std::size_t>(4 * count + padding), 7);
    auto actual = expected;
    plain_kernels.interleave(rows.data(), count, expected.data());
    tested().interleave(rows.data(), count, actual.data());
    ASSERT_EQ(actual, expected) << count;
    plain_kernels.interleave_4(rows.data(), count, expected.data());
    tested().interleave_4(rows.data(), count, actual.data());
    ASSERT_EQ(actual, expected) << count;
  }
}

TEST_P(ResizeKernels, FloatsAreThoseOfPlainCodeAndNoMoreAreWritten) {
  SCOPED_TRACE(seed_text);
  for (int round = 0; round < rounds; ++round) {
    normalisation by;
    for (auto& scale : by.scale) scale = static_cast<float>(draw.uniform(-10, 10) / 255);
    for (auto& bias : by.bias) bias = static_cast<float>(draw.uniform(-10, 10));
    const int count = 1 + below(200);
    const auto in = noise<std::uint8_t>(count, 256);
    std::vector<float> expected(static_cast<std::size_t>(count + padding), 7);
    auto actual = expected;
    plain_kernels.to_f32(in.data(), count, by, expected.data());
    tested().to_f32(in.data(), count, by, actual.data());
    ASSERT_EQ(actual, expected);
    std::vector<std::uint16_t> expected_halves(static_cast<std::size_t>(count + padding), 7);
    auto actual_halves = expected_halves;
    plain_kernels.to_f16(in.data(), count, by, expected_halves.data());
    tested().to_f16(in.data(), count, by, actual_halves.data());
    ASSERT_EQ(actual_halves, expected_halves);
    plain_kernels.to_bf16(in.data(), count, by, expected_halves.data());
    tested().to_bf16(in.data(), count, by, actual_halves.data());
    ASSERT_EQ(actual_halves, expected_halves);
  }
}

TEST_P(ResizeKernels, HalvesRoundToNearestEvenAtEveryMagnitude) {
  SCOPED_TRACE(seed_text);
  for (int exponent = -30; exponent <= 20; ++exponent) {
    normalisation by;
    by.scale.fill(static_cast<float>(std::ldexp(1 + below(4096) / 4096.0, exponent)));
    by.bias.fill(0);
    const auto in = noise<std::uint8_t>(96, 256);
    std::vector<std::uint16_t> expected(96);
    auto actual = expected;
    plain_kernels.to_f16(in.data(), 96, by, expected.data());
    tested().to_f16(in.data(), 96, by, actual.data());
    ASSERT_EQ(actual, expected) << exponent;
  }
}

static std::uint16_t plain_f16(float value) {
  normalisation by{};
  by.bias[0] = value;
  const std::uint8_t zero = 0;
  std::uint16_t half = 0;
  plain_kernels.to_f16(&zero, 1, by, &half);
  return half;
}

static std::uint16_t plain_bf16(float value) {
  normalisation by{};
  by.bias[0] = value;
  const std::uint8_t zero = 0;
  std::uint16_t half = 0;
  plain_kernels.to_bf16(&zero, 1, by, &half);
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

TEST(ResizeAxis, WeightsOfEachOutputAddUpToOne) {
  random draw(1);
  for (int round = 0; round < 200; ++round) {
    const int size = 1 + static_cast<int>(draw.below(5000));
    resize_axis axis;
    axis.plan({0, double(size), 0, size}, 1 + static_cast<int>(draw.below(300)));
    ASSERT_TRUE(axis.stride() == 4 || axis.stride() % 8 == 0);
    for (int i = 0; i < axis.count(); ++i) {
      ASSERT_LE(axis.taps(i), axis.stride());
      int sum = 0;
      for (int k = 0; k < axis.taps(i); ++k) sum += axis.weights(i)[k];
      ASSERT_EQ(sum, 1 << resize_axis::precision);
      ASSERT_GE(axis.start(i), 0);
      ASSERT_LE(axis.start(i) + axis.taps(i), size);
    }
  }
}

}  // namespace lade::media
