// Frames of damaged files through filter graphs: each is filtered or ends in an error of ours, and
// takes little memory.

#include "../../support/resident_memory.hpp"
#include "../../support/seed.hpp"
#include "../av/damaged_files.hpp"
#include "../av/media_files.hpp"

#include <lade/media/av/decoder.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/media/filters/filter_graph.hpp>
#include <lade/media/filters/filter_text.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <malloc.h>

namespace lade::media::corrupt_filters_test {

// 50 frames and a decoder's references, 16 at most, each of 2^18 pixels with 6 bytes: 104 MB. The
// results are small.
static constexpr std::size_t most_memory = std::size_t{128} << 20;

// The frames that decoding a damaged file leaves.
static std::vector<frame> damaged_frames(const buffer& file, std::string_view name,
                                         stream_kind kind) {
  const auto packets = demux(file, name, kind, {}, {.damage = damage_policy::tolerate});
  return decode(packets, {.damage = damage_policy::tolerate, .max_pixels = 1 << 18});
}

class CorruptFilters : public testing::Test {
 protected:
  // Cuts and damages each file, and calls `filter` with the frames, which may throw an error.
  template <class F>
  void use_damaged(std::span<const media_recipe> recipes, const char* input, stream_kind kind,
                   const F& filter) {
    for (const auto& recipe : recipes) {
      const auto path = media_files::path(recipe, input);
      const auto file = read_bytes(path);
      const auto use = [&](const buffer& damaged) {
        measure([&] { succeeds([&] { filter(damaged_frames(damaged, path, kind)); }); }, path);
      };
      for (int i = 0; i < rounds_; ++i) use(with_flips(file, random_));
      for (int i = 0; i < rounds_; ++i) use(copy_of(file, random_() % file.size()));
    }
  }

 private:
  template <class F>
  void measure(const F& call, const std::string& path) {
    const auto growth = test::growth_during(call);
    if (measures_memory_) {
      EXPECT_LE(growth, most_memory) << path;
    }
  }

  bool measures_memory_ = test::memory_can_be_measured() && mallopt(M_PERTURB, 0) == 1;
  int rounds_ = corrupt_rounds(2);
  std::uint64_t seed_ = test::new_seed();
  testing::ScopedTrace trace_{__FILE__, __LINE__, "LADE_SEED=" + std::to_string(seed_)};
  std::mt19937_64 random_{seed_};
};

TEST_F(CorruptFilters, VideosAreScaledOrErrorsOfOurs) {
  // Containers that the recipes of all tests do not have.
  static constexpr media_recipe others[] = {{"mpeg2.mpg", "-c:v mpeg2video -g 12 -bf 2"},
                                            {"ffv1.nut", "-c:v ffv1 -pix_fmt yuv444p"}};
  const auto text = scale_filter({.width = 64, .height = 64, .fit = scale_fit::pad});
  std::size_t filtered = 0;
  for (const auto recipes :
       {video_recipes(), untimed_recipes(), std::span<const media_recipe>(others)})
    use_damaged(recipes, moving, stream_kind::video, [&](const std::vector<frame>& frames) {
      for (const auto& each : filter_frames(frames, text)) {
        EXPECT_EQ(each.width(), 64);
        EXPECT_EQ(each.height(), 64);
        ++filtered;
      }
    });
  EXPECT_GT(filtered, 0U);
}

TEST_F(CorruptFilters, AudioIsResampledOrAnErrorOfOurs) {
  static constexpr media_recipe others[] = {{"aac.aac", "-c:a aac"}};
  const auto text = filter_chain(
      {sample_rate_filter(16'000), sample_format_filter("flt"), channel_layout_filter("mono")});
  std::int64_t samples = 0;
  for (const auto recipes : {audio_recipes(), std::span<const media_recipe>(others)})
    use_damaged(recipes, sounding, stream_kind::audio, [&](const std::vector<frame>& frames) {
      for (const auto& each : filter_frames(frames, text)) {
        EXPECT_EQ(each.sample_rate(), 16'000);
        EXPECT_EQ(each.channels(), 1);
        samples += each.samples();
      }
    });
  EXPECT_GT(samples, 0);
}

}  // namespace lade::media::corrupt_filters_test
