#include "../support/seed.hpp"
#include "png_writer.hpp"

#include <lade/bucket.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/media/size_buckets.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/stack.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lade::media::size_buckets_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(SizeBuckets, AnImageGetsTheSizeWithTheNearestProportions) {
  const size_buckets sizes({{512, 512}, {640, 384}, {384, 640}});
  EXPECT_EQ(sizes.nearest({500, 375}), 1u);
  EXPECT_EQ(sizes.nearest({500, 400}), 0u);
  EXPECT_EQ(sizes.nearest({375, 500}), 2u);
  EXPECT_EQ(sizes.nearest({1, 2'000'000'000}), 2u);
  EXPECT_EQ(sizes[1], (image_size{640, 384}));
  EXPECT_THAT(sizes.boundaries(), ElementsAre(0, 1, 2));
}

TEST(SizeBuckets, ChoosesTheFirstOfTwoEquallyNearSizes) {
  EXPECT_EQ(size_buckets({{200, 100}, {100, 200}}).nearest({7, 7}), 0u);
  EXPECT_EQ(size_buckets({{100, 200}, {200, 100}}).nearest({7, 7}), 0u);
}

TEST(SizeBuckets, TheNearestIsThatOfAPlainLoopOverLogarithms) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  random draw(seed);
  const auto any = [&] { return 1 + static_cast<int>(draw.below(1000)); };
  const std::vector<image_size> all{{512, 512}, {640, 384}, {384, 640}, {768, 320}, {320, 768}};
  const size_buckets sizes(all);
  for (int round = 0; round < 1000; ++round) {
    const image_size image{any(), any()};
    const auto distance = [&](const image_size& size) {
      return std::abs(std::log(double(size.width) / size.height) -
                      std::log(double(image.width) / image.height));
    };
    const auto chosen = distance(sizes[sizes.nearest(image)]);
    for (const auto& size : all) ASSERT_LE(chosen, distance(size) + 1e-12);
  }
}

TEST(SizeBuckets, SizesThatCannotWorkAreNamed) {
  const auto refused = [](std::vector<image_size> sizes, const char* why) {
    EXPECT_THAT([&] { size_buckets{sizes}; },
                ThrowsMessage<error>(HasSubstr(std::string("make size_buckets: ") + why)));
  };
  refused({}, "there is no size");
  refused({{512, 512}, {0, 5}}, "0 x 5 is not 1 to 32768 pixels wide and high");
  refused({{32769, 5}}, "32769 x 5 is not");
  refused({{20, 10}, {5, 5}, {40, 20}}, "40 x 20 has the proportions of 20 x 10");
  EXPECT_THAT([] { size_buckets({{1, 1}}).nearest({0, 5}); },
              ThrowsMessage<error>(HasSubstr("choose a size: the image has no pixels")));
}

TEST(SizeBuckets, BatchesHaveOneSizeEachAndEverySampleOnce) {
  const std::vector<std::array<int, 2>> shapes{{60, 40}, {40, 60}, {50, 50}, {90, 50}, {41, 60}};
  std::vector<sample> samples;
  for (std::size_t i = 0; i < 40; ++i) {
    const auto [width, height] = shapes[i % shapes.size()];
    const std::vector<std::uint32_t> grey(static_cast<std::size_t>(width * height), 7);
    samples.push_back(sample(std::to_string(i)).with_data(write_png(grey, width, height, {})));
  }
  const size_buckets sizes({{16, 16}, {24, 12}, {12, 24}});
  const decode_image image({.width = 16, .height = 16, .fit = image_fit::cover});
  const auto decode = [sizes, image](const sample& in) {
    const auto number = sizes.nearest(size_of_image(in));
    const auto crop = image.crop_of(in, {}, sizes[number]);
    return sample(in.key()).with_fields({{"image", image(in, crop)}, {"size", number}});
  };
  const auto number = [](const sample& in) { return in.field("size").integer(); };
  const auto batches = from(samples) | map(decode) |
                       bucket(number, {.boundaries = sizes.boundaries(), .size = 4}) |
                       stack({.fields = "image"});
  runtime runtime({.threads = 2});
  std::map<std::string, int> seen;
  for (auto& batch : runtime.run(batches))
    for (const auto& each : batch.samples()) {
      const auto& size = sizes[static_cast<std::size_t>(each.field("size").integer())];
      EXPECT_EQ(batch["image"].shape(),
                (dimensions{static_cast<std::int64_t>(batch.size()), size.height, size.width, 3}));
      ++seen[each.key()];
    }
  EXPECT_EQ(seen.size(), 40u);
  EXPECT_TRUE(std::ranges::all_of(seen, [](const auto& each) { return each.second == 1; }));
}

}  // namespace lade::media::size_buckets_test
