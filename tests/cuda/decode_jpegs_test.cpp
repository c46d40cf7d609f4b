#include <lade/batch.hpp>
#include <lade/cuda/decode_jpegs.hpp>
#include <lade/cuda/error.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>
#include <lade/trace.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../../cuda/kernel_launches.hpp"
#include "../../cuda/runtime_api.hpp"
#include "../support/coroutines.hpp"
#include "../support/pipelines.hpp"
#include "../support/seed.hpp"
#include "../support/temp_dir.hpp"
#include "emulated_grids.hpp"
#include "fake_driver.hpp"
#include "fake_nvjpeg.hpp"

namespace lade::cuda::decode_jpegs_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using testing::ThrowsMessage;
using testing::UnorderedElementsAre;
using testing_support::code_of;

// The emulated grids, which run where the stream comes to them.
class queued_grids {
 public:
  queued_grids() : emulated_(7), now_(&current_launches()) {
    current_ = this;
    replace_launches(&queued);
  }
  queued_grids(const queued_grids&) = delete;
  ~queued_grids() {
    replace_launches(nullptr);
    current_ = nullptr;
  }

 private:
  template <class Work, int (*kernel_launches::*Launch)(const Work&, CUstream_st*)>
  static int queue(const Work& work, CUstream_st* on) {
    auto run = [](void* argument) {
      const std::unique_ptr<Work> queued(static_cast<Work*>(argument));
      if (!current_) return;  // the device has failed, and the test is over
      EXPECT_EQ((current_->now_->*Launch)(*queued, nullptr), 0);
    };
    auto argument = std::make_unique<Work>(work);
    const int result = api().launch_host_func(on, run, argument.get());
    if (result == cudaSuccess) (void)argument.release();
    return result;
  }

  static constexpr kernel_launches queued{
      launch_copy, queue<convert_batch, &kernel_launches::convert>, launch_layout,
      queue<resample_batch, &kernel_launches::resample>};
  static inline queued_grids* current_ = nullptr;

  emulated_grids emulated_;
  const kernel_launches* now_;
};

// A GPU with an nvJPEG and kernels, and a runtime.
struct resizing_world {
  ~resizing_world() {
    EXPECT_THAT(nvjpeg.faults(), IsEmpty());
    EXPECT_THAT(driver.faults(), IsEmpty());
  }

  fake_driver driver;
  fake_nvjpeg nvjpeg{driver};
  queued_grids grids;
  lade::runtime runtime{{.threads = 3}};
};

static buffer bytes_of(const std::string& text) {
  buffer bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

static jpeg_source source(const tiny_jpeg& file) {
  return jpeg_source(bytes_of(file.bytes()), "s" + std::to_string(file.seed) + ".jpg");
}

static constexpr std::uint8_t cpu_seed = 77;

static tensor draw_on_cpu(const buffer&) {
  tensor image(element_type::u8, {4, 6, 3});
  for (int i = 0; i < 72; ++i)
    image.data<std::uint8_t>()[i] = drawn(cpu_seed, i / 3 % 6, i / 18, i % 3);
  return image;
}

// A batch of u8 [n, height, width, 3], so that views of that size are copied.
static image_batch small(int width, int height) {
  return {.type = element_type::u8, .layout = pixel_layout::hwc, .width = width, .height = height};
}

static void expect_view(const tensor& image, std::uint8_t seed, int left, int top) {
  const auto* pixels = image.data<std::uint8_t>();
  const auto width = static_cast<int>(image.shape()[1]);
  for (int i = 0; i < static_cast<int>(image.spec().elements()); ++i)
    ASSERT_EQ(pixels[i], drawn(seed, left + i / 3 % width, top + i / 3 / width, i % 3)) << i;
}

TEST(ResizedJpegs, AreViewsOfTheImages) {
  resizing_world world;
  jpeg_decoder decoder(device(0), draw_on_cpu);
  auto view = [](std::size_t index, int width, int height) {
    EXPECT_EQ(width, index == 1 ? 6 : 9);
    EXPECT_EQ(height, index == 1 ? 4 : 8);
    return image_view{.crop = {.left = index == 1 ? 1. : 4., .top = 1, .width = 5, .height = 3}};
  };
  std::vector<jpeg_source> files{source({.width = 9, .seed = 1}), source({.seed = 2, .bits = 12}),
                                 source({.width = 9, .seed = 3})};
  const auto batch = sync_wait(world.runtime, decoder.decode(std::move(files), small(5, 3), view));
  EXPECT_EQ(to_string(batch.images().shape()), "[3, 3, 5, 3]");
  EXPECT_EQ(to_string(batch.images().where()), "cuda:0");
  expect_view(batch.images()[0], 1, 4, 1);
  expect_view(batch.images()[1], cpu_seed, 1, 1);
  expect_view(batch.images()[2], 3, 4, 1);
  for (const auto& failure : batch.failures()) EXPECT_FALSE(failure);
}

TEST(ResizedJpegs, FailAlone) {
  resizing_world world;
  jpeg_decoder decoder(device(0));
  auto view = [](std::size_t index, int, int) {
    image_view chosen;
    if (index == 3) chosen.crop = {.left = 6, .width = 5, .height = 3};
    return chosen;
  };
  std::vector<jpeg_source> files;
  for (std::uint8_t i = 0; i < 5; ++i)
    files.push_back(source({.seed = i, .bits = i == 1 ? 12 : 8}));
  const auto batch = sync_wait(world.runtime, decoder.decode(std::move(files), small(8, 8), view));
  EXPECT_EQ(to_string(batch.images().shape()), "[3, 8, 8, 3]");
  for (std::uint8_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(batch.failures()[2 * std::size_t{i}]);
    expect_view(batch.images()[i], static_cast<std::uint8_t>(2 * i), 0, 0);
  }
  EXPECT_THAT([&] { std::rethrow_exception(batch.failures()[1]); },
              ThrowsMessage<error>(HasSubstr("decode s1.jpg: the GPU cannot decode it")));
  EXPECT_THAT([&] { std::rethrow_exception(batch.failures()[3]); },
              ThrowsMessage<error>(HasSubstr("decode s3.jpg: write images on the device")));
  EXPECT_EQ(decoder.stats().failed, 2u);
}

TEST(ResizedJpegs, FailuresOfUnnamedFilesStateTheIndex) {
  resizing_world world;
  jpeg_decoder decoder(device(0));
  auto view = [](std::size_t index, int, int) {
    if (index == 2) throw std::runtime_error("no view");
    return image_view{.crop = {.left = index == 3 ? 6. : 0., .width = 5, .height = 3}};
  };
  std::vector<jpeg_source> files;
  for (std::uint8_t i = 0; i < 5; ++i)
    files.emplace_back(bytes_of(tiny_jpeg{.seed = i, .bits = i == 1 ? 12 : 8}.bytes()));
  const auto batch = sync_wait(world.runtime, decoder.decode(std::move(files), small(8, 8), view));
  const auto failure = [&](std::size_t i) { std::rethrow_exception(batch.failures()[i]); };
  EXPECT_THAT([&] { failure(1); },
              ThrowsMessage<error>(StartsWith("decode image 1 of a batch: the GPU")));
  EXPECT_THAT([&] { failure(2); }, ThrowsMessage<error>("decode image 2 of a batch: no view"));
  EXPECT_THAT([&] { failure(3); },
              ThrowsMessage<error>(StartsWith("decode image 3 of a batch: write images")));
}

TEST(ResizedJpegs, AreInMemoryOfTheDecoderWhateverTheKindSays) {
  resizing_world world;
  jpeg_decoder decoder(device(0));
  auto kind = small(8, 8);
  kind.images = 1;
  kind.gpu = 5;
  std::vector<jpeg_source> files{source({.seed = 1}), source({.seed = 2})};
  const auto batch = sync_wait(world.runtime, decoder.decode(std::move(files), kind));
  expect_view(batch.images()[1], 2, 0, 0);
}

TEST(ResizedJpegs, FailWithTheirViews) {
  resizing_world world;
  jpeg_decoder decoder(device(0));
  auto view = [](std::size_t index, int, int) {
    if (index < 2) throw std::runtime_error("no view");
    return image_view{};
  };
  std::vector<jpeg_source> files{source({.seed = 1}), source({.seed = 2})};
  auto batch = sync_wait(world.runtime, decoder.decode(files, small(8, 8), view));
  EXPECT_EQ(to_string(batch.images().shape()), "[0, 8, 8, 3]");
  files.push_back(source({.seed = 3}));
  batch = sync_wait(world.runtime, decoder.decode(files, small(8, 8), view));
  expect_view(batch.images()[0], 3, 0, 0);
  EXPECT_THAT([&] { std::rethrow_exception(batch.failures()[1]); },
              ThrowsMessage<error>("decode s2.jpg: no view"));
}

TEST(ResizedJpegs, AreRefusedAsAWhole) {
  resizing_world world;
  auto decode = [&](const jpeg_decoder& decoder, std::vector<jpeg_source> files) {
    return code_of(
        [&] { (void)sync_wait(world.runtime, decoder.decode(std::move(files), small(5, 3))); });
  };
  EXPECT_EQ(decode(jpeg_decoder(device(0), {}, {.planar = true}), {source({.seed = 1})}),
            errc::invalid_argument);
  EXPECT_EQ(decode(jpeg_decoder(device(0)), {}), errc::invalid_argument);
  const jpeg_decoder decoder(device(0));
  auto decode_to = [&](const image_batch& to) {
    std::vector<jpeg_source> files{source({.seed = 1})};
    (void)sync_wait(world.runtime, decoder.decode(std::move(files), to));
  };
  EXPECT_THAT([&] { decode_to(small(0, 3)); },
              ThrowsMessage<error>(HasSubstr("decode JPEG images to a batch: ")));
  EXPECT_EQ(code_of([&] { decode_to({.type = element_type::i64, .width = 3, .height = 3}); }),
            errc::unsupported);
  EXPECT_EQ(code_of([&] { (void)sync_wait(decoder.decode({source({.seed = 1})}, small(5, 3))); }),
            errc::no_runtime);
}

static sample jpeg_sample(int i) {
  const tiny_jpeg file{.seed = static_cast<std::uint8_t>(i), .bits = i % 5 == 4 ? 12 : 8};
  return sample("f" + std::to_string(i) + ".jpg", 10 * i).with_data(bytes_of(file.bytes()));
}

static image_view from_label(const sample& of, int width, int) {
  return {.crop = {
              .left = static_cast<double>(of.label() / 10 % (width - 4)), .width = 5, .height = 3}};
}

TEST(DecodeJpegs, MakesBatchesOfSamples) {
  resizing_world world;
  {
    jpeg_decoder decoder(device(0), draw_on_cpu);
    auto batches = from(test::numbers{22}) | map(jpeg_sample, {.concurrency = 1}) | batch(4) |
                   map(decode_jpegs(decoder, small(5, 3), from_label));
    int next = 0;
    for (auto& made : world.runtime.run(batches)) {
      EXPECT_TRUE(made.ready().is_complete());
      EXPECT_EQ(made.on(), device(0));
      EXPECT_EQ(made.tensors()[0].name(), "data");
      for (std::int64_t i = 0; i < made.tensor().shape()[0]; ++i, ++next) {
        const bool by_cpu = next % 5 == 4;
        expect_view(made.tensor()[i], by_cpu ? cpu_seed : static_cast<std::uint8_t>(next),
                    next % (by_cpu ? 2 : 4), 0);
        EXPECT_EQ(made.labels().data<std::int64_t>()[i], 10 * next);
        EXPECT_EQ(made.samples()[static_cast<std::size_t>(i)].key(),
                  "f" + std::to_string(next) + ".jpg");
        EXPECT_FALSE(made.samples()[static_cast<std::size_t>(i)].has_data());
      }
    }
    EXPECT_EQ(next, 22);
    EXPECT_EQ(decoder.stats().unsupported, 4u);
  }
  device(0).synchronize();
  EXPECT_EQ(world.driver.live().device_bytes, 0u);
}

TEST(DecodeJpegs, NamesTheSampleThatCannotBeDecoded) {
  resizing_world world;
  jpeg_decoder decoder(device(0));
  auto batches = from(test::numbers{8}) | map(jpeg_sample, {.concurrency = 1}) | batch(4) |
                 map(decode_jpegs(decoder, small(5, 3)));
  auto consume = [&] {
    for (auto& made : world.runtime.run(batches)) (void)made.size();
  };
  EXPECT_THAT(consume, ThrowsMessage<error>(HasSubstr("decode f4.jpg: the GPU cannot decode it")));
}

static constexpr decode_jpegs_options skipping{.on_error = on_error::skip};

TEST(DecodeJpegs, LeavesOutSamplesThatCannotBeDecoded) {
  resizing_world world;
  jpeg_decoder decoder(device(0));
  decode_jpegs decode(decoder, small(5, 3), from_label, skipping);
  auto batches =
      from(test::numbers{12}) | map(jpeg_sample, {.concurrency = 1}) | batch(4) | map(decode);
  std::vector<int> numbers;
  std::vector<std::size_t> sizes;
  for (auto& made : world.runtime.run(batches)) {
    sizes.push_back(made.size());
    EXPECT_EQ(made.tensor().shape()[0], static_cast<std::int64_t>(made.size()));
    for (std::size_t i = 0; i < made.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      numbers.push_back(static_cast<int>(made.labels().data<std::int64_t>()[i] / 10));
      EXPECT_EQ(made.samples()[i].key(), "f" + std::to_string(numbers.back()) + ".jpg");
      EXPECT_FALSE(made.samples()[i].has_data());
      expect_view(made.tensor()[at], static_cast<std::uint8_t>(numbers.back()), numbers.back() % 4,
                  0);
    }
  }
  EXPECT_THAT(numbers, ElementsAre(0, 1, 2, 3, 5, 6, 7, 8, 10, 11));
  EXPECT_THAT(sizes, ElementsAre(4, 3, 3));
  EXPECT_EQ(decode.stats().skipped, 2u);
  EXPECT_THAT(decode.stats().reasons, UnorderedElementsAre(StartsWith("decode f4.jpg: the GPU"),
                                                           StartsWith("decode f9.jpg: the GPU")));
}

TEST(DecodeJpegs, FailsABatchIfAllSamplesFail) {
  resizing_world world;
  jpeg_decoder decoder(device(0));
  decode_jpegs decode(decoder, small(5, 3), {}, skipping);
  std::vector<sample> bad{jpeg_sample(4), jpeg_sample(9)};
  EXPECT_THAT([&] { (void)sync_wait(world.runtime, decode(bad)); },
              ThrowsMessage<error>(HasSubstr("decode a batch of 2 samples: all have failed, the "
                                             "first: decode f4.jpg: the GPU cannot decode it")));
  EXPECT_EQ(code_of([&] { (void)sync_wait(world.runtime, decode(bad)); }), errc::unsupported);
  EXPECT_EQ(decode.stats().skipped, 0u);
}

TEST(DecodeJpegs, KeepsTheReasonsOfTheFirstSkippedSamples) {
  resizing_world world;
  jpeg_decoder decoder(device(0));
  decode_jpegs decode(decoder, small(5, 3), {}, skipping);
  std::vector<sample> samples{jpeg_sample(1)};
  for (int i = 0; i < 20; ++i) samples.push_back(jpeg_sample(5 * i + 4));
  EXPECT_EQ(sync_wait(world.runtime, decode(std::move(samples))).size(), 1u);
  EXPECT_EQ(decode.stats().skipped, 20u);
  EXPECT_EQ(decode.stats().reasons.size(), 16u);
}

// Each sample has a chance to be undecodable, to have no view, or one that is refused.
static image_view view_or_failure(const sample& of, int, int) {
  const auto number = of.label() / 10;
  if (number % 7 == 3) throw std::runtime_error("no view");
  if (number % 7 == 5) return {.crop = {.left = 6, .width = 5, .height = 3}};
  return {.crop = {.left = static_cast<double>(number % 4), .width = 5, .height = 3}};
}

TEST(DecodeJpegs, LeavesOutAnySamples) {
  const auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  resizing_world world;
  jpeg_decoder decoder(device(0));
  decode_jpegs decode(decoder, small(5, 3), view_or_failure, skipping);
  for (int round = 0; round < 40; ++round) {
    std::vector<sample> samples{jpeg_sample(0)};
    std::vector<int> expected{0};
    for (auto left = random() % 9; left > 0; --left) {
      const auto number = static_cast<int>(random() % 250);
      samples.push_back(jpeg_sample(number));
      if (number % 5 != 4 && number % 7 != 3 && number % 7 != 5) expected.push_back(number);
    }
    const auto made = sync_wait(world.runtime, decode(std::move(samples)));
    ASSERT_EQ(made.size(), expected.size());
    ASSERT_EQ(made.tensor().shape()[0], static_cast<std::int64_t>(expected.size()));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(made.labels().data<std::int64_t>()[i], 10 * expected[i]);
      expect_view(made.tensor()[static_cast<std::int64_t>(i)],
                  static_cast<std::uint8_t>(expected[i]), expected[i] % 4, 0);
    }
  }
}

TEST(DecodeJpegs, EndsTheRunWithTheDevice) {
  fake_driver driver;
  fake_nvjpeg nvjpeg(driver);
  queued_grids grids;
  lade::runtime runtime({.threads = 3});
  jpeg_decoder decoder(device(0));
  auto batches = from(test::numbers{-1}) | map(jpeg_sample, {.concurrency = 1}) | batch(4) |
                 map(decode_jpegs(decoder, small(5, 3), {}, skipping),
                     {.retry = {.attempts = 1000, .pause = {}}, .on_error = on_error::skip});
  auto made = runtime.run(batches, {.on_error = on_error::skip});
  EXPECT_TRUE(made.wait_next());
  driver.break_device(cudaErrorIllegalAddress);
  const auto code = code_of([&] {
    while (made.wait_next()) {}
  });
  EXPECT_EQ(code, condition::device_lost) << code.message();
}

TEST(DecodeJpegs, RefusesNoSamples) {
  resizing_world world;
  jpeg_decoder decoder(device(0));
  decode_jpegs decode(decoder, small(5, 3));
  EXPECT_THAT([&] { (void)sync_wait(world.runtime, decode({})); },
              ThrowsMessage<error>("decode JPEG images on a GPU: there are no files"));
}

TEST(DecodeJpegs, RefusesWhatCannotWork) {
  resizing_world world;
  jpeg_decoder decoder(device(0));
  EXPECT_EQ(code_of([&] { decode_jpegs(decoder, small(5, 0)); }), errc::invalid_argument);
  const image_batch whole{.type = element_type::i32, .width = 5, .height = 3};
  EXPECT_EQ(code_of([&] { decode_jpegs(decoder, whole); }), errc::unsupported);
  world.driver.fail_next("stream_create", cudaErrorMemoryAllocation);
  EXPECT_TRUE(code_of([&] { decode_jpegs(decoder, small(5, 3)); }));
  const decode_jpegs planar(jpeg_decoder(device(0), {}, {.planar = true}), small(5, 3));
  EXPECT_EQ(code_of([&] { (void)sync_wait(world.runtime, planar({jpeg_sample(1)})); }),
            errc::invalid_argument);
  const decode_jpegs decode(decoder, small(5, 3));
  EXPECT_EQ(code_of([&] { (void)sync_wait(decode({jpeg_sample(1)})); }), errc::no_runtime);
}

TEST(DecodeJpegs, RefusesSamplesWithoutData) {
  resizing_world world;
  jpeg_decoder decoder(device(0));
  decode_jpegs decode(decoder, small(5, 3));
  std::vector<sample> samples{sample("a.jpg")};
  EXPECT_THAT([&] { (void)sync_wait(world.runtime, decode(std::move(samples))); },
              ThrowsMessage<error>("decode a.jpg: it has not been read"));
}

TEST(DecodeJpegs, HasNoLabelsWhereNoSampleHas) {
  resizing_world world;
  jpeg_decoder decoder(device(0));
  decode_jpegs decode(decoder, small(8, 8));
  std::vector<sample> samples;
  samples.push_back(sample("a.jpg").with_data(bytes_of(tiny_jpeg{.seed = 3}.bytes())));
  const auto made = sync_wait(world.runtime, decode(std::move(samples)));
  EXPECT_FALSE(made.has_labels());
  expect_view(made.tensor()[0], 3, 0, 0);
}

TEST(DecodeJpegs, ShowsInATraceHowManyBatchesTheGpuDecodes) {
  testing_support::temp_dir dir;
  resizing_world world;
  {
    trace record(dir / "trace");
    jpeg_decoder decoder(device(0), draw_on_cpu, {.batches = 2});
    auto batches = from(test::numbers{8}) | map(jpeg_sample, {.concurrency = 1}) | batch(2) |
                   map(decode_jpegs(decoder, small(4, 4)), {.concurrency = 4, .name = "jpegs"});
    world.driver.hold();
    auto items = world.runtime.run(batches, {.trace = &record});
    while (world.nvjpeg.engine_batches().size() < 2) std::this_thread::yield();
    world.driver.release();
    EXPECT_EQ(test::collect(items).size(), 4u);
  }
  std::ifstream file(dir / "trace");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, HasSubstr("jpegs on the GPU"));
  for (const auto* count : {"2", "1", "0"})
    EXPECT_THAT(text, HasSubstr(std::string("\"queued\":") + count + "}"));
  EXPECT_THAT(text, Not(HasSubstr("\"queued\":3}")));
}

// Among them one that the CPU decodes, and one that nvJPEG finds damaged.
TEST(DecodeJpegs, EndsNoCaptureOfAnotherThread) {
  resizing_world world;
  world.nvjpeg.set_decoding(2, nvjpeg_status::bad_jpeg);
  world.driver.begin_capture();
  {
    jpeg_decoder decoder(device(0), draw_on_cpu, {.keep_pinned_bytes = 0});
    auto batches = from(test::numbers{8}) | map(jpeg_sample, {.concurrency = 1}) | batch(4) |
                   map(decode_jpegs(decoder, small(4, 4)));
    EXPECT_EQ(test::collect(world.runtime, batches).size(), 2u);
    EXPECT_EQ(decoder.stats().damaged, 1u);
  }
  EXPECT_EQ(world.nvjpeg.live_objects(), 0u);
}

TEST(DecodeJpegs, FailsWithTheDriverAndIsUsedAgain) {
  for (const char* function : {"memcpy_async", "event_record", "malloc_async", "event_create"}) {
    for (std::size_t after = 0; after < 4; ++after) {
      SCOPED_TRACE(std::string(function) + " " + std::to_string(after));
      resizing_world world;
      jpeg_decoder decoder(device(0), draw_on_cpu);
      decode_jpegs decode(decoder, small(4, 4));
      auto run = [&] {
        std::vector<sample> samples{jpeg_sample(1), jpeg_sample(4)};
        return sync_wait(world.runtime, decode(std::move(samples)));
      };
      world.driver.fail_next(function, cudaErrorMemoryAllocation, after);
      (void)code_of([&] { (void)run(); });
      world.driver.fail_no_more();
      EXPECT_EQ(run().labels().data<std::int64_t>()[1], 40);
    }
  }
}

}  // namespace lade::cuda::decode_jpegs_test
