#include "../../media/resize_kernels.hpp"
#include "../support/guarded_row.hpp"
#include "kernel_levels.hpp"

#include <lade/random.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace lade::media::resize_kernels_test {

using testing::ElementsAreArray;

class ResizeKernels : public kernel_levels {
 protected:
  // The rows end with their padding, before memory that may not be read.
  void compare_filters(const resize_axis& axis) {
    resize_blocks blocks;
    const bool blocked = blocks.plan(axis);
    test::guarded_row in(noise<std::int16_t>(axis.last() - axis.first() + padding, 16321));
    std::vector<std::uint8_t> expected(static_cast<std::size_t>(axis.count() + padding));
    auto actual = expected;
    plain_resize.filter(in.data(), axis, nullptr, expected.data());
    tested().filter(in.data(), axis, blocked ? &blocks : nullptr, actual.data());
    expected.resize(static_cast<std::size_t>(axis.count()));
    actual.resize(expected.size());
    ASSERT_EQ(actual, expected) << axis.count() << " of " << axis.last() - axis.first();
  }

  const resize_kernels& tested() const { return resize_kernels_of(GetParam()); }

  static constexpr int padding = resize_kernels::row_padding;
};

INSTANTIATE_TEST_SUITE_P(Levels, ResizeKernels, testing::Values(simd::avx2, simd::avx512),
                         name_of_level);

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
    plain_resize.blend(rows.data(), axis.weights(y), axis.taps(y), count, expected.data());
    tested().blend(rows.data(), axis.weights(y), axis.taps(y), count, actual.data());
    ASSERT_THAT(first_of(actual, count), ElementsAreArray(first_of(expected, count)));
  }
}

TEST_P(ResizeKernels, BlendOfWideSamplesIsThatOfPlainCode) {
  SCOPED_TRACE(seed_text);
  for (int round = 0; round < rounds; ++round) {
    resize_axis axis;
    const int size = 1 + below(300);
    axis.plan({0, double(size), 0, size}, 1 + below(300));
    const int count = 1 + below(300);
    const int y = below(axis.count());
    const auto memory = noise<std::uint8_t>(2 * count * (axis.taps(y) + 1) + 1, 256);
    std::vector<const std::uint8_t*> rows;
    for (int k = 0; k <= axis.taps(y); ++k) rows.push_back(memory.data() + 1 + 2 * k * count);
    const wide_samples samples{.left = below(8),
                               .centre = static_cast<std::int16_t>(below(2) * (128 << 6)),
                               .gain = static_cast<std::int16_t>(-below(129))};
    std::vector<std::int16_t> expected(static_cast<std::size_t>(count + padding));
    auto actual = expected;
    plain_resize.blend_16(rows.data(), axis.weights(y), axis.taps(y), count, samples,
                          expected.data());
    tested().blend_16(rows.data(), axis.weights(y), axis.taps(y), count, samples, actual.data());
    ASSERT_THAT(first_of(actual, count), ElementsAreArray(first_of(expected, count)));
  }
}

TEST_P(ResizeKernels, SplitIsThatOfPlainCode) {
  SCOPED_TRACE(seed_text);
  for (int round = 0; round < rounds; ++round) {
    const int count = 1 + below(200);
    const auto in = noise<std::int16_t>(4 * (count + padding), 16321);
    const auto compare = [&](auto split) {
      const auto channels_of = [&](const resize_kernels& by) {
        std::vector<std::int16_t> out(static_cast<std::size_t>(4 * (count + padding)));
        std::array<std::int16_t*, 4> rows;
        for (int c = 0; c < 4; ++c)
          rows[static_cast<std::size_t>(c)] = out.data() + c * (count + padding);
        (by.*split)(in.data(), count, rows.data());
        for (auto* row : rows) std::fill_n(row + count, padding, std::int16_t{0});
        return out;
      };
      ASSERT_EQ(channels_of(tested()), channels_of(plain_resize)) << count;
    };
    compare(&resize_kernels::split_2);
    compare(&resize_kernels::split_3);
    compare(&resize_kernels::split_4);
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

TEST(ResizeAxis, WeightsOfEachOutputAddUpToOne) {
  random draw(1);
  for (int round = 0; round < 200; ++round) {
    const int size = 1 + static_cast<int>(draw.below(5000));
    resize_axis axis;
    axis.plan({0, double(size), 0, size}, 1 + static_cast<int>(draw.below(300)));
    ASSERT_TRUE(axis.stride() == 4 || axis.stride() == 8 || axis.stride() % 16 == 0);
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

}  // namespace lade::media::resize_kernels_test
