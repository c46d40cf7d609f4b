#include <lade/cuda/nvdec/capabilities.hpp>
#include <lade/cuda/nvdec/decode_clip.hpp>
#include <lade/cuda/to_device.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/io/file.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../../support/coroutines.hpp"
#include "../worlds.hpp"
#include "coded_videos.hpp"
#include "fake_gpu.hpp"
#include "host_clips.hpp"

namespace lade::cuda::decode_clip_test {

using media::clip_options;
using testing::HasSubstr;
using testing_support::code_of;

static tensor host_copy(const device_clip& of) {
  const stream reader(device(of.frames().where().index));
  of.use_on(reader);
  return host_tensor(of.frames(), reader);
}

class NvdecClips : public testing::TestWithParam<driver_kind> {
 protected:
  void SetUp() override {
    if (GetParam() == driver_kind::fake) {
      fake_ = std::make_unique<fake_gpu>(fake_nvcuvid::options{.engines = 1});
      kernels_ = std::make_unique<fake_kernels>();
    } else if (device::count() == 0) {
      GTEST_SKIP() << device::why_none();
    } else if (limits_of(device(0), {.codec = "h264"}).engines == 0) {
      GTEST_SKIP() << "no H.264";
    }
  }

  // Decodes with both; they differ by no more than a level.
  void expect_equal(const std::string& recipe, const clip_options& options, float level = 1) {
    expect_equal(sample_of(recipe), options, level);
  }
  void expect_equal(const sample& in, const clip_options& options, float level = 1) {
    SCOPED_TRACE(in.name());
    runtime runtime({.threads = 2});
    const decode_clip decode(options);
    const auto clip = sync_wait(runtime, decode(in, random(7, 1)));
    const auto expected = media::decode_clip(options)(in, random(7, 1));
    EXPECT_EQ(clip.frames().spec(), expected.spec());
    EXPECT_EQ(clip.frames().where().type, lade::device::kind::cuda);
    EXPECT_TRUE(clip.is_decoded_by_gpu()) << decode.stats().reason;
    EXPECT_LE(largest_difference(host_copy(clip), expected), level);
  }

  void expect_equal_where_decoded(const std::vector<coded_video>& videos, int width, int height) {
    for (const auto& video : videos)
      if (fake_ || limits_of(device(0), video.coding).engines > 0)
        expect_equal(sample_of(video),
                     {.sampling = {.frames = 3}, .width = width, .height = height});
  }

  std::unique_ptr<fake_gpu> fake_;
  std::unique_ptr<fake_kernels> kernels_;
};

TEST_P(NvdecClips, AreThoseOfTheCpu) {
  for (const auto* recipe : {"h264.mp4", "h264-open-gop.mp4", "hevc.mp4", "h264-cut.mp4"})
    expect_equal(recipe, {.sampling = {.frames = 6, .fps = 8}, .width = 40, .height = 32});
}

TEST_P(NvdecClips, OfEachSamplingAreThoseOfTheCpu) {
  using enum media::clip_position;
  for (const auto position : {random, centre, first, spread})
    expect_equal(
        "h264.mp4",
        {.sampling = {.frames = 5, .position = position, .stride = 3}, .width = 48, .height = 24});
  expect_equal(
      "h264.mp4",
      {.sampling = {.frames = 4, .clips = 3, .position = spaced}, .width = 48, .height = 24});
  expect_equal("h264.mp4", {.sampling = {.frames = 80}, .width = 32, .height = 24});
  expect_equal(
      "h264.mp4",
      {.sampling = {.frames = 80, .end = media::clip_end::shorten}, .width = 32, .height = 24});
}

TEST_P(NvdecClips, OfEachCropAndTypeAreThoseOfTheCpu) {
  const media::clip_sampling four{.frames = 4, .stride = 5};
  expect_equal("h264.mp4",
               {.sampling = four,
                .width = 56,
                .height = 56,
                .fit = media::image_fit::centre_crop,
                .layout = media::clip_layout::tchw,
                .type = element_type::f32,
                .mean = media::imagenet_mean,
                .stddev = media::imagenet_stddev},
               0.02F);
  for (const double flip : {0.0, 1.0})
    expect_equal("h264.mp4", {.sampling = four,
                              .width = 56,
                              .height = 48,
                              .fit = media::image_fit::random_crop,
                              .flip = flip,
                              .colour = media::image_colour::bgr});
}

TEST_P(NvdecClips, HaveTheColoursThatAreStated) {
  expect_equal_where_decoded(coloured_videos(), 178, 98);
}

TEST_P(NvdecClips, HaveTheColoursThatTheCpuTakesWhereStatementsAreMissingOrContradictory) {
  expect_equal_where_decoded(contradictory_videos(), 178, 98);
}

TEST_P(NvdecClips, HaveChromaSamplesWhereTheCpuHasThem) {
  expect_equal_where_decoded(sited_videos(), 178, 98);
}

TEST_P(NvdecClips, OfEachDepthAreThoseOfTheCpu) {
  expect_equal_where_decoded(deep_videos(), 60, 40);
}

TEST_P(NvdecClips, WithPlanesOfChannelsAreThoseOfTheCpu) {
  using enum media::clip_layout;
  const media::clip_sampling several{
      .frames = 4, .clips = 3, .position = media::clip_position::spaced};
  for (const auto& sampling : {media::clip_sampling{.frames = 5}, several})
    expect_equal("h264.mp4", {.sampling = sampling, .width = 40, .height = 22, .layout = cthw});
  expect_equal("h264.mp4", {.sampling = {.frames = 80, .end = media::clip_end::shorten},
                            .width = 32,
                            .height = 24,
                            .layout = cthw});
  expect_equal("h264.mp4",
               {.sampling = several,
                .width = 40,
                .height = 22,
                .layout = cthw,
                .type = element_type::f32,
                .mean = media::imagenet_mean,
                .stddev = media::imagenet_stddev},
               0.02F);
}

INSTANTIATE_TEST_SUITE_P(Fake, NvdecClips, testing::Values(driver_kind::fake));
INSTANTIATE_TEST_SUITE_P(Gpu, NvdecClips, testing::Values(driver_kind::real));

static constexpr clip_options small{.sampling = {.frames = 4}, .width = 32, .height = 24};

// Decodes a sample that the CPU must decode, and says why.
static std::string reason_of(const sample& in) {
  runtime runtime({.threads = 2});
  const decode_clip decode(small);
  const auto clip = sync_wait(runtime, decode(in, random(3, 1)));
  EXPECT_FALSE(clip.is_decoded_by_gpu());
  EXPECT_EQ(largest_difference(host_copy(clip), media::decode_clip(small)(in, random(3, 1))), 0);
  EXPECT_EQ(decode.stats().by_cpu, 1u);
  EXPECT_EQ(decode.stats().by_gpu, 0u);
  return decode.stats().reason;
}
static std::string reason_of(const std::string& recipe) { return reason_of(sample_of(recipe)); }
static std::string reason_of(const media::media_recipe& recipe) {
  return reason_of(sample_of(coded_video{recipe, {}}));
}

TEST(NvdecClip, IsLeftToTheCpuWhereTheGpuCannotDecodeIt) {
  fake_gpu gpu({.refused = {cudaVideoCodec_HEVC}});
  const fake_kernels kernels;
  EXPECT_THAT(reason_of("hevc.mp4"), HasSubstr("does not decode hevc"));
  EXPECT_THAT(reason_of("mpeg4-b.mp4"), HasSubstr("does not decode the codec"));
  EXPECT_THAT(reason_of("h264-rotated.mov"), HasSubstr("must be turned"));
  EXPECT_THAT(reason_of("h264-repeated-times.mkv"), HasSubstr("by their times"));
}

TEST(NvdecClip, IsLeftToTheCpuWhereItIsUpsideDown) {
  fake_gpu gpu;
  const fake_kernels kernels;
  std::string half_turned = media::turned_copy;
  half_turned.replace(half_turned.find("90"), 2, "180");
  EXPECT_THAT(reason_of({"h264-upside-down.mov", half_turned.c_str(), "h264.mp4"}),
              HasSubstr("must be turned"));
}

TEST(NvdecClip, IsLeftToTheCpuWhereTheKernelsLackItsColours) {
  fake_gpu gpu;
  const fake_kernels kernels;
  EXPECT_THAT(
      reason_of({"h264-top.mp4", "-i {} -c copy -bsf:v h264_metadata=chroma_sample_loc_type=3",
                 "h264.mp4"}),
      HasSubstr("the kernels do not support its chroma sample positions"));
  EXPECT_THAT(reason_of({"h264-in-rgb.mkv", "-i {} -c copy -colorspace rgb", "h264-444.mkv"}),
              HasSubstr("its planes are not luma and chroma"));
}

TEST(NvdecClip, IsLeftToTheCpuWhereNvdecReportsDamage) {
  for (const auto status : {cuvidDecodeStatus_Error, cuvidDecodeStatus_Error_Concealed}) {
    fake_gpu gpu({.status = status});
    const fake_kernels kernels;
    EXPECT_THAT(reason_of("h264.mp4"), HasSubstr("a picture is damaged"));
  }
}

// On the CPU. The first ones all differ, so that no statement can be ignored.
static std::vector<tensor> differing_clips(const std::vector<coded_video>& videos,
                                           std::size_t different) {
  const clip_options whole{.sampling = {.frames = 1}, .width = 178, .height = 98};
  std::vector<tensor> clips;
  for (const auto& video : videos)
    clips.push_back(media::decode_clip(whole)(sample_of(video), random(3, 1)));
  for (std::size_t i = 0; i < different; ++i)
    for (std::size_t k = 0; k < i; ++k) EXPECT_GT(largest_difference(clips[i], clips[k]), 4);
  return clips;
}

TEST(NvdecClip, OfOtherColoursDiffers) {
  const auto clips = differing_clips(coloured_videos(), 6);
  EXPECT_EQ(largest_difference(clips[6], clips[2]), 0);  // the stream's statement counts
  EXPECT_EQ(largest_difference(clips[7], clips[4]), 0);  // only the container has one
}

TEST(NvdecClip, WithOtherChromaSamplesDiffers) { (void)differing_clips(sited_videos(), 3); }

TEST(NvdecClip, OfTheCpuIsCopiedFromPinnedMemory) {
  fake_gpu gpu({.refused = {cudaVideoCodec_H264}});
  const fake_kernels kernels;
  runtime runtime({.threads = 2});
  EXPECT_THAT(transfers_of(runtime).pinned_bytes, 0u);
  const decode_clip decode(small);
  for (int i = 0; i < 3; ++i) (void)sync_wait(runtime, decode(sample_of("h264.mp4")));
  EXPECT_EQ(decode.stats().by_cpu, 3u);
  EXPECT_GT(transfers_of(runtime).pinned_bytes, 0u);
  EXPECT_EQ(transfers_of(runtime).fallback_bytes, 0u);
}

// Each clip that follows would fail as well, and the consumer would get none, without a word.
TEST(NvdecClip, OfALostDeviceEndsTheRunWhateverTheStageSaysOfFailures) {
  fake_gpu gpu;
  {
    const fake_kernels kernels;
    runtime runtime({.threads = 2});
    const decode_clip decode(small);
    std::vector<sample> samples(20, sample_of("h264.mp4"));
    auto clips =
        from(samples) |
        map(decode, {.concurrency = 1, .retry = {.attempts = 3}, .on_error = on_error::skip});
    int taken = 0;
    const auto code = code_of([&] {
      for (auto& clip : runtime.run(clips)) {
        EXPECT_TRUE(clip.is_decoded_by_gpu());
        if (++taken == 2) gpu.driver.break_device(cudaErrorIllegalAddress);
      }
    });
    EXPECT_EQ(code, condition::device_lost) << code.message();
    EXPECT_LT(taken, 20);
  }
  gpu.abandoned = gpu.nvdec.live().decoders;
}

TEST(NvdecClip, IsLeftToTheCpuAfterAFailureOfNvdec) {
  fake_gpu gpu;
  const fake_kernels kernels;
  gpu.nvdec.fail_next("create_decoder", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_THAT(reason_of("h264.mp4"), HasSubstr("cudaErrorMemoryAllocation"));
}

TEST(NvdecClip, IsLeftToTheCpuWithoutNvdec) {
  if (device::count() > 0) GTEST_SKIP() << "there is a GPU";
  fake_driver driver;
  EXPECT_THAT(reason_of("h264.mp4"), HasSubstr("load NVDEC"));
}

// Keeps for ever why NVDEC cannot be loaded.
static const bool was_loaded = [] {
  fake_driver driver;
  return !code_of([] { (void)limits_of(device(0), {.codec = "h264"}); });
}();

TEST(NvdecClip, OfADamagedVideoFailsAsOnTheCpu) {
  fake_gpu gpu;
  const fake_kernels kernels;
  runtime runtime({.threads = 2});
  const auto whole = sample_of("h264.mp4").data();
  const auto cut = sample("cut.mp4").with_data(whole.slice(0, whole.size() / 2));
  const decode_clip decode(small);
  EXPECT_EQ(code_of([&] { (void)sync_wait(runtime, decode(cut)); }),
            code_of([&] { (void)media::decode_clip(small)(cut); }));
}

TEST(NvdecClip, NeedsOptionsThatTheGpuHas) {
  fake_gpu gpu;
  auto grey = small;
  grey.colour = media::image_colour::grey;
  EXPECT_EQ(code_of([&] { decode_clip decode(grey); }), errc::unsupported);
  for (const int surfaces : {0, 17})
    EXPECT_EQ(code_of([&] { decode_clip decode(small, {.surfaces = surfaces}); }),
              errc::invalid_argument);
  EXPECT_EQ(code_of([&] { decode_clip decode(small, {.device = 3}); }).category().name(),
            std::string("lade"));
}

TEST(NvdecClip, ReturnsItsMemory) {
  fake_gpu gpu;
  const fake_kernels kernels;
  {
    runtime runtime({.threads = 2});
    const decode_clip decode(small);
    for (int i = 0; i < 3; ++i) (void)sync_wait(runtime, decode(sample_of("h264.mp4")));
    EXPECT_EQ(decode.stats().by_gpu, 3u);
  }
  gpu.driver.run();
  EXPECT_EQ(gpu.driver.live().device_bytes, 0u);
  EXPECT_EQ(gpu.driver.live().streams, 0u);
}

TEST(NvdecClip, IsAnItemOfAPipeline) {
  fake_gpu gpu({.engines = 1});
  const fake_kernels kernels;
  runtime runtime({.threads = 2});
  std::vector<sample> samples;
  for (const auto* recipe : {"h264.mp4", "hevc.mp4", "mpeg4-b.mp4", "h264-open-gop.mp4"})
    samples.push_back(sample_of(recipe));
  const decode_clip decode(small);
  auto clips = from(samples) | map(decode, {.concurrency = 3});
  std::vector<bool> by_gpu;
  for (auto& clip : runtime.run(clips, {.seed = 5})) by_gpu.push_back(clip.is_decoded_by_gpu());
  EXPECT_EQ(by_gpu, (std::vector<bool>{true, true, false, true}));
}

static task<device_clip> read_clip(std::string path, decode_clip decode) {
  auto from = co_await io::open_reader(path);
  co_return co_await decode.read(from, random(3, 1));
}

// How often a thread waits for the GPU while a clip is decoded, whose frames all have surfaces.
static std::size_t blocking_calls(int frames) {
  fake_gpu gpu;
  const fake_kernels kernels;
  runtime runtime({.threads = 2});
  const decode_clip decode({.sampling = {.frames = frames}, .width = 32, .height = 24},
                           {.surfaces = 16});
  EXPECT_TRUE(sync_wait(runtime, decode(sample_of("h264.mp4"))).is_decoded_by_gpu());
  EXPECT_EQ(gpu.nvdec.calls("map_frame"), static_cast<std::size_t>(frames));
  std::size_t sum = 0;
  for (const auto* call : {"event_synchronize", "stream_synchronize", "device_synchronize"})
    sum += gpu.driver.calls(call);
  return sum;
}

TEST(NvdecClip, OfMoreFramesBlocksNoThreadMoreOften) {
  EXPECT_EQ(blocking_calls(1), blocking_calls(16));
}

TEST(NvdecClip, IsReadByRanges) {
  fake_gpu gpu;
  const fake_kernels kernels;
  runtime runtime({.threads = 2});
  const auto path = media::video_path(media::video_recipe("h264-long-gop.mp4"));
  const decode_clip decode(small);
  const auto clip = sync_wait(runtime, read_clip(path, decode));
  EXPECT_TRUE(clip.is_decoded_by_gpu());
  const auto expected = media::decode_clip(small)(sample_of("h264-long-gop.mp4"), random(3, 1));
  EXPECT_LE(largest_difference(host_copy(clip), expected), 1);
}

}  // namespace lade::cuda::decode_clip_test
