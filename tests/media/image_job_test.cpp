#include "../../media/image_job.hpp"
#include "../support/seed.hpp"
#include "jpeg_maker.hpp"

#include <lade/error.hpp>
#include <lade/media/image.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>
#include <vector>

namespace lade::media::image_job_test {

// Images and the jobs that decode them, with the lanes of this thread.
class ImageJob : public testing::Test {
 protected:
  ImageJob() : seed(test::new_seed()), make(seed), trace(__FILE__, __LINE__, seed) {}

  sample file(int width, int height, const jpeg_kind& kind = {}) {
    const auto bytes = make.file(width, height, kind);
    buffer data(bytes.size());
    std::memcpy(data.data(), bytes.data(), bytes.size());
    return sample("a.jpg").with_data(std::move(data));
  }

  static tensor new_slot(const tensor_spec& spec, std::string_view) { return tensor(spec); }

  void begin(image_job& job, const sample& in) { job.begin(in, random(1), new_slot); }

  image_job job_of(std::size_t lane) { return {worker, lane, options, counts}; }

  static void expect_same(const tensor& a, const tensor& b) {
    ASSERT_EQ(a.spec(), b.spec());
    EXPECT_EQ(std::memcmp(a.bytes(), b.bytes(), a.spec().bytes()), 0);
  }

  std::uint64_t seed;
  jpeg_maker make;
  testing::ScopedTrace trace;
  used_decoders worker;
  image_options options;
  image_counts counts;
};

TEST_F(ImageJob, InterleavesThePartnerInEveryWayOfDecoding) {
  for (const bool fast : {false, true})
    for (const auto colour : {image_colour::rgb, image_colour::grey}) {
      options = {.colour = colour, .fast = fast};
      const decode_image alone(options);
      auto now = job_of(0), next = job_of(1);
      const auto first = file(200, 160), second = file(100, 160, {.quality = 10});
      begin(now, first);
      begin(next, second);
      ASSERT_FALSE(next.is_complete());
      const auto partner = [&] { return next.is_complete() ? nullptr : &next; };
      const auto made = now.finish(partner);
      EXPECT_TRUE(next.is_complete()) << fast << int(colour);
      const auto of_next = next.finish();
      expect_same(made, alone(first));
      expect_same(of_next, alone(second));
    }
}

TEST_F(ImageJob, AsksForAnotherPartnerWhenOneIsComplete) {
  auto now = job_of(0), next = job_of(1), last = job_of(2);
  const auto first = file(300, 300), second = file(60, 60), third = file(60, 60);
  begin(now, first);
  begin(next, second);
  begin(last, third);
  now.finish([&]() -> image_job* {
    if (!next.is_complete()) return &next;
    return last.is_complete() ? nullptr : &last;
  });
  EXPECT_TRUE(next.is_complete());
  EXPECT_TRUE(last.is_complete());
  const auto of_next = next.finish(), of_last = last.finish();
  const decode_image alone(options);
  expect_same(of_next, alone(second));
  expect_same(of_last, alone(third));
}

TEST_F(ImageJob, AsksForAnotherPartnerWhenALargeOneStops) {
  auto now = job_of(0), next = job_of(1), last = job_of(2);
  const auto first = file(800, 400), large = file(1000, 1400), third = file(40, 40);
  begin(now, first);
  begin(next, large);
  begin(last, third);
  now.finish([&]() -> image_job* {
    return next.can_interleave() ? &next : last.can_interleave() ? &last : nullptr;
  });
  EXPECT_FALSE(next.is_complete());
  EXPECT_TRUE(last.is_complete());
  const auto of_next = next.finish(), of_last = last.finish();
  const decode_image alone(options);
  expect_same(of_next, alone(large));
  expect_same(of_last, alone(third));
}

TEST_F(ImageJob, ProgressiveImagesAskForNoPartner) {
  auto now = job_of(0), next = job_of(1);
  const auto first = file(60, 60, {.progressive = true}), second = file(60, 60);
  begin(now, first);
  begin(next, second);
  EXPECT_TRUE(now.is_complete());
  now.finish([&]() -> image_job* {
    ADD_FAILURE() << "a partner was asked for";
    return nullptr;
  });
  EXPECT_FALSE(next.is_complete());
  const auto made = next.finish();
  expect_same(made, decode_image(options)(second));
}

}  // namespace lade::media::image_job_test
