#include <lade/batch.hpp>
#include <lade/cuda/nvdec/decode_clips.hpp>
#include <lade/cuda/nvdec/surfaces.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>
#include <lade/trace.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../../support/coroutines.hpp"
#include "../../support/pipelines.hpp"
#include "../../support/temp_dir.hpp"
#include "../worlds.hpp"
#include "fake_gpu.hpp"
#include "host_clips.hpp"

namespace lade::cuda::decode_clips_test {

using media::clip_options;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::code_of;

// Of the middle, so that no random number counts.
static constexpr clip_options middle{
    .sampling = {.frames = 4, .position = media::clip_position::centre}, .width = 32, .height = 24};

static std::vector<sample> labelled_videos() {
  std::vector<sample> samples;
  for (const auto* recipe :
       {"h264.mp4", "hevc.mp4", "mpeg4-b.mp4", "h264-open-gop.mp4", "h264.mp4"})
    samples.push_back(sample_of(recipe).with_label(static_cast<std::int64_t>(10 * samples.size())));
  return samples;
}

static tensor host_copy_of(const device_batch& of, const tensor& part) {
  const stream reader(of.on());
  of.wait_on(reader);
  return host_tensor(part, reader);
}

class NvdecBatches : public testing::TestWithParam<driver_kind> {
 protected:
  void SetUp() override {
    if (GetParam() == driver_kind::fake) {
      fake_ = std::make_unique<fake_gpu>();
      kernels_ = std::make_unique<fake_kernels>();
    } else if (device::count() == 0) {
      GTEST_SKIP() << device::why_none();
    }
  }

  std::unique_ptr<fake_gpu> fake_;
  std::unique_ptr<fake_kernels> kernels_;
};

TEST_P(NvdecBatches, HaveTheClipsAndLabelsOfTheirSamples) {
  for (const auto layout : {media::clip_layout::thwc, media::clip_layout::cthw}) {
    runtime runtime({.threads = 2});
    auto options = middle;
    options.layout = layout;
    const auto samples = labelled_videos();
    const decode_clips decode(options);
    auto batches = from(samples) | batch(2) | map(decode);
    std::size_t next = 0;
    for (auto& made : runtime.run(batches)) {
      EXPECT_TRUE(made.ready().is_complete());
      EXPECT_EQ(made.tensors()[0].name(), "data");
      EXPECT_EQ(made.tensor().where().type, lade::device::kind::cuda);
      const auto clips = host_copy_of(made, made.tensor());
      const auto labels = host_copy_of(made, made.labels());
      for (std::size_t i = 0; i < made.size(); ++i, ++next) {
        const auto place = static_cast<std::int64_t>(i);
        EXPECT_LE(largest_difference(clips[place], media::decode_clip(options)(samples[next])), 1);
        EXPECT_EQ(labels.data<std::int64_t>()[i], samples[next].label());
        EXPECT_EQ(made.samples()[i].key(), samples[next].key());
        EXPECT_FALSE(made.samples()[i].has_data());
      }
    }
    EXPECT_EQ(next, samples.size());
    EXPECT_EQ(decode.stats().by_gpu + decode.stats().by_cpu, samples.size());
    EXPECT_GE(decode.stats().by_cpu, 1u);
  }
}

INSTANTIATE_TEST_SUITE_P(Fake, NvdecBatches, testing::Values(driver_kind::fake));
INSTANTIATE_TEST_SUITE_P(Gpu, NvdecBatches, testing::Values(driver_kind::real));

TEST(NvdecBatch, HasTheNameOfItsFieldAndNoLabelsWhereNoSampleHas) {
  fake_gpu gpu;
  const fake_kernels kernels;
  runtime runtime({.threads = 2});
  auto options = middle;
  options.field = "mp4";
  const auto video = sample_of("h264.mp4").data();
  std::vector<sample> samples;
  samples.push_back(sample("a").with_field(field("mp4", video)));
  const decode_clips decode(options);
  const auto made = sync_wait(runtime, decode(std::move(samples)));
  EXPECT_EQ(made.tensors()[0].name(), "mp4");
  EXPECT_FALSE(made.has_labels());
  EXPECT_EQ(made.samples()[0].find_field("mp4"), nullptr);
}

TEST(NvdecBatch, HasRandomClipsThatDependOnTheSeedAlone) {
  fake_gpu gpu;
  const fake_kernels kernels;
  auto options = middle;
  options.sampling.position = media::clip_position::random;
  options.fit = media::image_fit::random_crop;
  std::vector<std::vector<tensor>> seen;
  for (const unsigned threads : {1U, 3U}) {
    runtime runtime({.threads = threads});
    const std::vector<sample> samples(4, sample_of("h264.mp4"));
    auto batches = from(samples) | batch(2) | map(decode_clips(options));
    auto& clips = seen.emplace_back();
    for (auto& made : runtime.run(batches, {.seed = 3})) {
      const auto all = host_copy_of(made, made.tensor());
      for (const std::int64_t i : {0, 1}) clips.push_back(all[i]);
    }
  }
  ASSERT_EQ(seen[0].size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(largest_difference(seen[0][i], seen[1][i]), 0);
    for (std::size_t k = 0; k < i; ++k)
      EXPECT_GT(largest_difference(seen[0][i], seen[0][k]), 0) << i << " and " << k;
  }
}

// While the GPU stands still, no session ends.
TEST(NvdecBatch, UsesAllSessions) {
  fake_gpu gpu({.engines = 3});
  const fake_kernels kernels;
  runtime runtime({.threads = 2});
  const decode_clips decode(middle, {.surfaces = 1});
  std::vector<sample> samples(12, sample_of("h264-long-gop.mp4"));
  gpu.driver.hold();
  std::thread open([&] {
    while (gpu.nvdec.most_decoders() < 3) std::this_thread::yield();
    gpu.driver.release();
  });
  const auto made = sync_wait(runtime, decode(std::move(samples)));
  open.join();
  EXPECT_EQ(decode.stats().by_gpu, 12u);
  EXPECT_EQ(gpu.nvdec.most_decoders(), 3u);
  const auto clips = host_copy_of(made, made.tensor());
  for (std::int64_t i = 1; i < 12; ++i) EXPECT_EQ(largest_difference(clips[i], clips[0]), 0);
}

TEST(NvdecBatch, NamesTheSampleThatCannotBeDecoded) {
  fake_gpu gpu;
  const fake_kernels kernels;
  runtime runtime({.threads = 2});
  auto samples = labelled_videos();
  buffer noise(64);
  std::ranges::fill(noise.bytes(), std::byte{7});
  samples[1] = sample("noise.mp4").with_data(noise);
  auto unread = labelled_videos();
  unread[3] = std::move(unread[3]).without_data();
  const decode_clips decode(middle);
  EXPECT_THAT([&] { (void)sync_wait(runtime, decode(samples)); },
              ThrowsMessage<error>(HasSubstr("noise.mp4")));
  EXPECT_THAT([&] { (void)sync_wait(runtime, decode(unread)); },
              ThrowsMessage<error>(HasSubstr("decode h264-open-gop.mp4: the sample has no data")));
  EXPECT_EQ(sync_wait(runtime, decode(labelled_videos())).size(), 5u);
}

TEST(NvdecBatch, NeedsSamplesAndOptionsThatWork) {
  fake_gpu gpu;
  runtime runtime({.threads = 2});
  auto short_ones = middle;
  short_ones.sampling.end = media::clip_end::shorten;
  EXPECT_EQ(code_of([&] { decode_clips decode(short_ones); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { decode_clips decode(middle, {.surfaces = 0}); }), errc::invalid_argument);
  const decode_clips decode(middle);
  EXPECT_EQ(code_of([&] { (void)sync_wait(runtime, decode({})); }), errc::invalid_argument);
  EXPECT_EQ(decode.spec(), media::decode_clip(middle).spec());
  EXPECT_FALSE(decode.is_random());
}

TEST(NvdecBatch, ShowsInATraceHowManyVideosTheGpuDecodes) {
  testing_support::temp_dir dir;
  fake_gpu gpu({.engines = 1});
  const fake_kernels kernels;
  runtime runtime({.threads = 2});
  {
    trace record(dir / "trace");
    const std::vector<sample> samples(4, sample_of("h264.mp4"));
    auto batches = from(samples) | batch(2) | map(decode_clips(middle), {.name = "clips"});
    EXPECT_EQ(test::collect(runtime, batches, {.trace = &record}).size(), 2u);
  }
  std::ifstream file(dir / "trace");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, HasSubstr("clips on the GPU"));
  for (const auto* count : {"1", "0"})
    EXPECT_THAT(text, HasSubstr(std::string("\"queued\":") + count + "}"));
  EXPECT_THAT(text, testing::Not(HasSubstr("\"queued\":2}")));
}

TEST(NvdecBatch, EndsNoCaptureOfAnotherThread) {
  fake_gpu gpu;
  const fake_kernels kernels;
  gpu.driver.begin_capture();
  {
    runtime runtime({.threads = 2});
    const decode_clips decode(middle, {.surfaces = 1});
    EXPECT_EQ(sync_wait(runtime, decode(labelled_videos())).size(), 5u);
    EXPECT_EQ(decode.stats().by_gpu, 4u);
    gpu.driver.fail_next("event_record", cudaErrorMemoryAllocation, 4);
    (void)code_of([&] { (void)sync_wait(runtime, decode(labelled_videos())); });
  }
  gpu.abandoned = gpu.nvdec.live().decoders;
}

// A decoder is lost where the end of the work on its surfaces cannot be awaited, batches are not.
TEST(NvdecBatch, ReturnsItsMemoryAfterEachFailureOfTheDriver) {
  fake_gpu gpu;
  const fake_kernels kernels;
  device_memory memory(device(0));
  {
    runtime runtime({.threads = 2});
    const decode_clips decode(middle, {.memory = &memory});
    for (const std::string function : {"malloc_async", "event_record", "event_create",
                                       "memcpy_async", "stream_wait_event", "launch_host_func"})
      for (const std::size_t after : {0U, 1U, 4U}) {
        SCOPED_TRACE(function + " after " + std::to_string(after));
        gpu.driver.fail_next(function, cudaErrorMemoryAllocation, after);
        (void)code_of([&] { (void)sync_wait(runtime, decode(labelled_videos())); });
        gpu.driver.fail_no_more();
        EXPECT_EQ(sync_wait(runtime, decode(labelled_videos())).size(), 5u);
        EXPECT_EQ(memory.used_bytes(), 0u);
      }
  }
  gpu.abandoned = gpu.nvdec.live().decoders;
}

TEST(NvdecBatch, OfALostDeviceEndsTheRun) {
  fake_gpu gpu;
  {
    const fake_kernels kernels;
    runtime runtime({.threads = 2});
    const std::vector<sample> samples(20, sample_of("h264.mp4"));
    auto batches = from(samples) | batch(2) |
                   map(decode_clips(middle), {.concurrency = 1, .on_error = on_error::skip});
    const auto code = code_of([&] {
      for (auto& made : runtime.run(batches)) {
        EXPECT_EQ(made.size(), 2u);
        gpu.driver.break_device(cudaErrorIllegalAddress);
      }
    });
    EXPECT_EQ(code, condition::device_lost) << code.message();
  }
  gpu.abandoned = gpu.nvdec.live().decoders;
}

}  // namespace lade::cuda::decode_clips_test
