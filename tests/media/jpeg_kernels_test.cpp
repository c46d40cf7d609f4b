#include "../../media/jpeg_kernels.hpp"
#include "kernel_levels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace lade::media::jpeg_kernels_test {

class JpegKernels : public kernel_levels {
 protected:
  const jpeg_kernels& tested() const { return jpeg_kernels_of(GetParam()); }

  static constexpr int padding = jpeg_kernels::row_padding;
};

INSTANTIATE_TEST_SUITE_P(Levels, JpegKernels, testing::Values(simd::avx2, simd::avx512),
                         name_of_level);

struct unstuffed_scan {
  std::vector<std::uint8_t> bytes;
  std::ptrdiff_t taken = 0;
  bool operator==(const unstuffed_scan&) const = default;
};

static unstuffed_scan unstuff_by(const jpeg_kernels& kernels, const std::vector<std::uint8_t>& in) {
  std::vector<std::uint8_t> out(in.size() + 64);
  auto* to = out.data();
  const auto* const stop = kernels.unstuff(in.data(), in.data() + in.size(), to);
  out.resize(static_cast<std::size_t>(to - out.data()));
  return {out, stop - in.data()};
}

TEST_P(JpegKernels, UnstuffingIsThatOfPlainCodeWhereverMarkersAndTheEndAre) {
  SCOPED_TRACE(seed_text);
  for (int round = 0; round < 10 * rounds; ++round) {
    auto in = noise<std::uint8_t>(below(400), 256);
    const int common = 1 + below(100);  // of these bytes, one is 0xff
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (below(common) == 0) in[i] = 0xff;
      const bool marker = below(20) == 0;
      if (i > 0 && in[i - 1] == 0xff && !marker) in[i] = 0;
    }
    ASSERT_EQ(unstuff_by(tested(), in), unstuff_by(plain_jpeg, in));
  }
}

using coefficient_block = std::array<std::int16_t, 64>;

struct transformed_blocks {
  std::vector<std::uint8_t> samples;
  bool exact = false;
};

using transform_of_kernels = jpeg_transform jpeg_kernels::*;

static transformed_blocks transform_by(const jpeg_kernels& kernels,
                                       const std::vector<coefficient_block>& blocks,
                                       const coefficient_block& quantisation,
                                       transform_of_kernels how = &jpeg_kernels::transform) {
  constexpr std::ptrdiff_t stride = 24;
  struct alignas(64) aligned {
    coefficient_block values;
  };
  std::vector<aligned> copies;
  for (const auto& block : blocks) copies.push_back({block});
  transformed_blocks result{.samples = std::vector<std::uint8_t>(blocks.size() * 8 * stride, 7)};
  std::vector<const std::int16_t*> in;
  std::vector<std::uint8_t*> out;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    in.push_back(copies[i].values.data());
    out.push_back(result.samples.data() + i * 8 * stride + 8);
  }
  result.exact = (kernels.*how)(in.data(), static_cast<int>(in.size()), quantisation.data(),
                                out.data(), stride);
  return result;
}

static constexpr transform_of_kernels all_transforms[] = {
    &jpeg_kernels::transform, &jpeg_kernels::transform_to_4, &jpeg_kernels::transform_to_2};

TEST_P(JpegKernels, TransformIsThatOfPlainCodeAndWritesNoMore) {
  SCOPED_TRACE(seed_text);
  int compared = 0;
  for (int round = 0; round < 20 * rounds; ++round) {
    coefficient_block quantisation;
    const int coarsest = 1 << below(9);
    for (auto& each : quantisation) each = static_cast<std::int16_t>(below(coarsest));
    std::vector<coefficient_block> blocks(static_cast<std::size_t>(1 + below(9)));
    const int largest = 1 << below(11);
    const int used = below(3) == 0 ? 1 : 1 + below(64);
    const std::size_t frequencies = below(2) == 0 ? 4 : 8;  // in both directions
    for (auto& block : blocks) {
      block = {};
      for (std::size_t k = 0; k < static_cast<std::size_t>(used); ++k)
        if (jpeg_zigzag[k] / 8 < frequencies && jpeg_zigzag[k] % 8 < frequencies)
          block[k] = static_cast<std::int16_t>(below(2 * largest) - largest);
    }
    for (const auto how : all_transforms) {
      const auto expected = transform_by(plain_jpeg, blocks, quantisation, how);
      const auto actual = transform_by(tested(), blocks, quantisation, how);
      if (!expected.exact || !actual.exact) continue;
      ++compared;
      ASSERT_EQ(actual.samples, expected.samples);
    }
  }
  EXPECT_GT(compared, 3 * rounds);
}

// Each column alone is small enough for 16 bits, a sum of two of them is not.
TEST_P(JpegKernels, PlainCodeRefusesWhatVectorsTransformOtherwise) {
  SCOPED_TRACE(seed_text);
  coefficient_block ones;
  ones.fill(1);
  for (int round = 0; round < 10 * rounds; ++round) {
    coefficient_block block{};
    for (std::size_t x = 0; x < 8; ++x) {
      const int place = 8 * below(8) + static_cast<int>(x);
      const auto k = std::ranges::find(jpeg_zigzag, place) - jpeg_zigzag.begin();
      const int value = below(4097);
      block[static_cast<std::size_t>(k)] =
          static_cast<std::int16_t>(below(2) == 0 ? value : -value);
    }
    const auto expected = transform_by(plain_jpeg, {block}, ones);
    const auto actual = transform_by(tested(), {block}, ones);
    if (!expected.exact || !actual.exact) continue;
    ASSERT_EQ(actual.samples, expected.samples);
  }
}

// Vector code has a shorter way for blocks without high frequencies.
TEST_P(JpegKernels, EachCoefficientCountsInTheTransform) {
  coefficient_block quantisation;
  quantisation.fill(8);
  for (std::size_t k = 0; k < 64; ++k)
    for (std::size_t at = 0; at < 5; ++at) {
      std::vector<coefficient_block> blocks(5);
      for (auto& block : blocks) block[0] = 3;
      blocks[at][k] = 40;
      for (const auto how : all_transforms) {
        const auto expected = transform_by(plain_jpeg, blocks, quantisation, how);
        const auto actual = transform_by(tested(), blocks, quantisation, how);
        EXPECT_TRUE(actual.exact);
        EXPECT_EQ(actual.samples, expected.samples) << "coefficient " << k << " of block " << at;
      }
    }
}

TEST_P(JpegKernels, ReducedTransformsRefuseTheColumnsThatPlainCodeRefuses) {
  SCOPED_TRACE(seed_text);
  coefficient_block ones;
  ones.fill(1);
  for (int round = 0; round < 10 * rounds; ++round) {
    std::vector<coefficient_block> blocks(static_cast<std::size_t>(1 + below(5)));
    const int largest = 1 + below(1300);
    for (auto& block : blocks)
      for (auto& value : block) value = static_cast<std::int16_t>(below(2 * largest) - largest);
    if (below(8) == 0) blocks[0][static_cast<std::size_t>(below(64))] = -32768;
    for (const auto how : {&jpeg_kernels::transform_to_4, &jpeg_kernels::transform_to_2}) {
      const auto expected = transform_by(plain_jpeg, blocks, ones, how);
      const auto actual = transform_by(tested(), blocks, ones, how);
      ASSERT_EQ(actual.exact, expected.exact);
      if (!expected.exact) continue;
      ASSERT_EQ(actual.samples, expected.samples);
    }
  }
}

TEST_P(JpegKernels, TransformRefusesMeansThatDoNotFitIntoTheShortcuts) {
  coefficient_block quantisation;
  quantisation.fill(1);
  for (const int mean : {8192, -8192, 32767, -32768})
    for (std::size_t at = 0; at < 9; ++at) {
      std::vector<coefficient_block> blocks(9);
      blocks[at][0] = static_cast<std::int16_t>(mean);
      EXPECT_FALSE(transform_by(tested(), blocks, quantisation).exact) << mean << " at " << at;
    }
}

TEST_P(JpegKernels, UpsamplingIsThatOfPlainCode) {
  SCOPED_TRACE(seed_text);
  for (int round = 0; round < rounds; ++round) {
    const int count = 1 + below(200), largest = below(4) == 0 ? 2 : 256;
    auto near = noise<std::uint8_t>(count + 2 * padding, largest);
    auto far = noise<std::uint8_t>(count + 2 * padding, largest);
    if (largest == 2)
      for (auto* row : {&near, &far})
        for (auto& sample : *row) sample = sample != 0 ? 255 : 0;
    const auto* const by = near.data() + padding;
    const auto* const other = far.data() + padding;
    const auto compare = [&](int made, auto upsample) {
      std::vector<std::uint8_t> expected(static_cast<std::size_t>(made + padding), 7);
      auto actual = expected;
      upsample(plain_jpeg, expected.data());
      upsample(tested(), actual.data());
      EXPECT_EQ(first_of(actual, made), first_of(expected, made)) << count;
    };
    compare(2 * count, [&](const jpeg_kernels& kernels, std::uint8_t* out) {
      kernels.double_columns(by, count, out);
    });
    compare(2 * count, [&](const jpeg_kernels& kernels, std::uint8_t* out) {
      kernels.double_both(by, other, count, out);
    });
    for (const int bias : {1, 2})
      compare(count, [&](const jpeg_kernels& kernels, std::uint8_t* out) {
        kernels.double_rows(by, other, bias, count, out);
      });
  }
}

TEST_P(JpegKernels, EveryColourIsThatOfPlainCode) {
  std::vector<std::uint8_t> y(65536 + padding), cb = y, cr = y;
  for (std::size_t i = 0; i < 65536; ++i) {
    cb[i] = static_cast<std::uint8_t>(i);
    cr[i] = static_cast<std::uint8_t>(i / 256);
  }
  const std::array<const std::uint8_t*, 3> in{y.data(), cb.data(), cr.data()};
  for (int luma = 0; luma < 256; luma += 5) {
    const int count = 65536 - luma % 64;
    std::ranges::fill(y, static_cast<std::uint8_t>(luma));
    const auto convert = [&](const jpeg_kernels& kernels) {
      std::array<std::vector<std::uint8_t>, 3> colours;
      for (auto& colour : colours) colour.resize(65536 + padding);
      const std::array<std::uint8_t*, 3> out{colours[0].data(), colours[1].data(),
                                             colours[2].data()};
      kernels.to_rgb(in.data(), count, out.data());
      for (auto& colour : colours) colour.resize(static_cast<std::size_t>(count));
      return colours;
    };
    ASSERT_EQ(convert(tested()), convert(plain_jpeg)) << luma;
  }
}

TEST(JpegKernels, MeansForWhichLibjpegsTableBeginsAgainAreRefused) {
  std::array<std::int16_t, 64> block{1}, quantisation{};
  const std::int16_t* blocks[] = {block.data()};
  std::uint8_t sample = 0;
  std::uint8_t* out[] = {&sample};
  for (const int sign : {1, -1}) {
    block[0] = static_cast<std::int16_t>(sign);
    quantisation[0] = 4091;
    EXPECT_TRUE(transform_to_1(blocks, 1, quantisation.data(), out, 1));
    EXPECT_EQ(sample, sign > 0 ? 255 : 0);
    quantisation[0] = 4092;
    EXPECT_FALSE(transform_to_1(blocks, 1, quantisation.data(), out, 1));
  }
}

}  // namespace lade::media::jpeg_kernels_test
