#include <lade/cuda/error.hpp>
#include <lade/cuda/jpeg_decoder.hpp>
#include <lade/cuda/memory.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/error.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/sync_wait.hpp>
#include <lade/this_context.hpp>
#include <lade/when_all.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../../cuda/nvjpeg_api.hpp"
#include "../../cuda/runtime_api.hpp"
#include "../support/coroutines.hpp"
#include "../support/seed.hpp"
#include "fake_driver.hpp"
#include "fake_nvjpeg.hpp"

namespace lade::cuda::jpeg_decoder_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;
using testing_support::code_of;

using images = std::vector<decoded_jpeg>;

static buffer buffer_with(const std::string& text) {
  buffer bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

static jpeg_source source(const tiny_jpeg& file, const jpeg_region& part = {}) {
  return jpeg_source(buffer_with(file.bytes()), "s" + std::to_string(file.seed) + ".jpg", part);
}

static std::uint8_t value_at(const tensor& image, std::int64_t y, std::int64_t x, std::int64_t c,
                             bool planar = false) {
  const auto& strides = image.strides();
  const auto at = planar ? c * strides[0] + y * strides[1] + x * strides[2]
                         : y * strides[0] + x * strides[1] + c * strides[2];
  return static_cast<std::uint8_t>(image.bytes()[at]);
}

// Expects the part of what the fake draws for the seed.
static void expect_drawn(const tensor& image, std::uint8_t seed, const jpeg_region& part,
                         bool planar = false) {
  const dimensions shape =
      planar ? dimensions{3, part.height, part.width} : dimensions{part.height, part.width, 3};
  ASSERT_EQ(to_string(image.shape()), to_string(shape));
  EXPECT_EQ(to_string(image.where()), "cuda:0");
  for (int y = 0; y < part.height; ++y)
    for (int x = 0; x < part.width; ++x)
      for (int c = 0; c < 3; ++c)
        ASSERT_EQ(value_at(image, y, x, c, planar), drawn(seed, part.left + x, part.top + y, c));
}

static constexpr std::uint8_t cpu_seed = 77;

// A decoder that draws the same for every file.
static tensor draw_on_cpu(const buffer&) {
  tensor image(element_type::u8, {4, 6, 3});
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 6; ++x)
      for (int c = 0; c < 3; ++c)
        image.data<std::uint8_t>()[y * 18 + x * 3 + c] = drawn(cpu_seed, x, y, c);
  return image;
}

// A GPU with an nvJPEG and a runtime. At the end nothing of theirs may live.
struct decoding_world {
  explicit decoding_world(const fake_nvjpeg::options& how = {}) : nvjpeg(driver, how) {}
  ~decoding_world() {
    EXPECT_THAT(nvjpeg.faults(), IsEmpty());
    EXPECT_THAT(driver.faults(), IsEmpty());
    EXPECT_EQ(nvjpeg.live_objects(), 0u);
  }

  images decode(const jpeg_decoder& decoder, std::vector<jpeg_source> files) {
    return sync_wait(runtime, decoder.decode(std::move(files)));
  }

  fake_driver driver;
  fake_nvjpeg nvjpeg;
  lade::runtime runtime{{.threads = 3}};
};

TEST(JpegDecoder, DecodesABatchInOrder) {
  decoding_world world;
  jpeg_decoder decoder(device(0));
  EXPECT_TRUE(decoder.has_hardware());
  std::vector<jpeg_source> files;
  for (std::uint8_t i = 0; i < 20; ++i)
    files.push_back(source({.width = 5 + i, .height = 9 - i % 3, .seed = i}));
  const auto decoded = world.decode(decoder, std::move(files));
  ASSERT_EQ(decoded.size(), 20u);
  for (std::uint8_t i = 0; i < 20; ++i)
    expect_drawn(decoded[i].image(), i, {0, 0, 5 + i, 9 - i % 3});
  EXPECT_THAT(world.nvjpeg.engine_batches(), ElementsAre(20));
  EXPECT_THAT(world.nvjpeg.gpu_batches(), IsEmpty());
  EXPECT_EQ(decoder.stats().hardware, 20u);
}

TEST(JpegDecoder, WritesPlanes) {
  decoding_world world;
  jpeg_decoder decoder(device(0), draw_on_cpu, {.planar = true});
  const auto decoded = world.decode(decoder, {source({.width = 7, .height = 3, .seed = 9}),
                                              source({.seed = 1, .components = 4})});
  expect_drawn(decoded[0].image(), 9, {0, 0, 7, 3}, true);
  expect_drawn(decoded[1].image(), cpu_seed, {0, 0, 6, 4}, true);
}

TEST(JpegDecoder, DecodesPartsOfImages) {
  decoding_world world;
  jpeg_decoder decoder(device(0), draw_on_cpu);
  const jpeg_region part{2, 1, 3, 2};
  const auto decoded =
      world.decode(decoder, {source({.width = 9, .seed = 4}, part), source({.seed = 5}),
                             source({.seed = 6, .bits = 12}, part)});
  expect_drawn(decoded[0].image(), 4, part);
  expect_drawn(decoded[1].image(), 5, {0, 0, 8, 8});
  expect_drawn(decoded[2].image(), cpu_seed, part);
}

TEST(JpegDecoder, RefusesRegionsOutsideTheImage) {
  decoding_world world;
  jpeg_decoder decoder(device(0), draw_on_cpu);
  const jpeg_region part{6, 0, 3, 2};
  const auto decoded = world.decode(decoder, {source({.seed = 4}, part), source({.seed = 5}),
                                              source({.seed = 6, .components = 4}, part)});
  EXPECT_THAT([&] { (void)decoded[0].image(); },
              ThrowsMessage<error>("decode s4.jpg: take a part of 3 x 2 at 6, 0: the image is 8 x "
                                   "8"));
  EXPECT_EQ(code_of([&] { (void)decoded[2].image(); }), errc::invalid_argument);
  expect_drawn(decoded[1].image(), 5, {0, 0, 8, 8});
  EXPECT_EQ(decoder.stats().failed, 2u);
}

TEST(JpegDecoder, UsesEnginesForTheImagesThatTheySupport) {
  decoding_world world;
  world.nvjpeg.set_unsupported_by_engines(2);
  world.nvjpeg.set_unsupported_by_engines(3);
  jpeg_decoder decoder(device(0));
  const auto decoded = world.decode(decoder, {source({.seed = 1}), source({.seed = 2}),
                                              source({.seed = 3}), source({.seed = 4})});
  for (std::uint8_t i = 0; i < 4; ++i)
    expect_drawn(decoded[i].image(), static_cast<std::uint8_t>(i + 1), {0, 0, 8, 8});
  EXPECT_THAT(world.nvjpeg.engine_batches(), ElementsAre(2));
  EXPECT_THAT(world.nvjpeg.gpu_batches(), ElementsAre(2));
  EXPECT_EQ(decoder.stats().hardware, 2u);
  EXPECT_EQ(decoder.stats().gpu, 2u);
}

TEST(JpegDecoder, WorksWithoutEngines) {
  decoding_world world({.has_engines = false});
  jpeg_decoder decoder(device(0));
  EXPECT_FALSE(decoder.has_hardware());
  expect_drawn(world.decode(decoder, {source({.seed = 1})})[0].image(), 1, {0, 0, 8, 8});
  EXPECT_THAT(world.nvjpeg.gpu_batches(), ElementsAre(1));
}

TEST(JpegDecoder, UsesNoEnginesWhenHardwareIsDisabled) {
  decoding_world world;
  jpeg_decoder decoder(device(0), {}, {.hardware = false});
  EXPECT_FALSE(decoder.has_hardware());
  expect_drawn(world.decode(decoder, {source({.seed = 1})})[0].image(), 1, {0, 0, 8, 8});
}

TEST(JpegDecoder, AllowsAnEmptyBatch) {
  decoding_world world;
  jpeg_decoder decoder(device(0));
  EXPECT_THAT(world.decode(decoder, {}), IsEmpty());
}

TEST(JpegDecoder, ReturnsMemoryWithTheLastImage) {
  decoding_world world;
  jpeg_decoder decoder(device(0), draw_on_cpu);
  const auto before = [&] {
    (void)world.decode(decoder, {source({.seed = 1})});
    device(0).synchronize();
    return world.driver.live().device_bytes;
  }();
  auto decoded = world.decode(decoder, {source({.seed = 2}), source({.seed = 3, .bits = 12})});
  EXPECT_GT(world.driver.live().device_bytes, before);
  decoded.clear();
  device(0).synchronize();
  EXPECT_LE(world.driver.live().device_bytes, before + 1000);
}

// Streams that read images.

// Decodes a batch, whose memory returns when the result is destroyed. Returns how much that is.
static std::size_t bytes_of_two(decoding_world& world, const jpeg_decoder& decoder) {
  auto decoded = world.decode(decoder, {source({.seed = 1}), source({.seed = 2})});
  const auto before = world.driver.live().device_bytes;
  decoded.clear();
  device(0).synchronize();
  return before - world.driver.live().device_bytes;
}

TEST(JpegDecoder, ReturnsMemoryBehindTheStreamsThatReadIt) {
  decoding_world world;
  jpeg_decoder decoder(device(0));
  stream reader(device(0));
  EXPECT_GT(bytes_of_two(world, decoder), 0u);
  auto decoded = world.decode(decoder, {source({.seed = 1}), source({.seed = 2})});
  const auto before = world.driver.live().device_bytes;
  decoded[1].use_on(reader);
  auto release = world.driver.block(reader.handle());
  decoded.clear();
  world.driver.run();
  EXPECT_EQ(world.driver.live().device_bytes, before);
  release();
  device(0).synchronize();
  EXPECT_LT(world.driver.live().device_bytes, before);
}

TEST(JpegDecoder, ReturnsMemoryBehindTheLastReadThatIsRecorded) {
  decoding_world world;
  jpeg_decoder decoder(device(0), draw_on_cpu);
  stream reader(device(0));
  auto decoded = world.decode(decoder, {source({.seed = 1}), source({.seed = 2, .bits = 12})});
  const auto before = world.driver.live().device_bytes;
  for (const auto& each : decoded) {
    each.use_on(reader);
    each.record_on(reader);
  }
  auto release = world.driver.block(reader.handle());
  decoded.clear();
  world.driver.run();
  EXPECT_LT(world.driver.live().device_bytes, before);
  release();
}

TEST(JpegDecoder, HasNothingToReturnForAnImageThatFailed) {
  decoding_world world;
  jpeg_decoder decoder(device(0));
  stream reader(device(0));
  const auto decoded = world.decode(decoder, {source({.seed = 1, .bits = 12})});
  const auto calls = world.driver.calls("event_record");
  decoded[0].use_on(reader);
  decoded[0].record_on(reader);
  EXPECT_EQ(world.driver.calls("event_record"), calls);
}

TEST(JpegDecoder, ThrowsIfAStreamCannotBeRecorded) {
  decoding_world world;
  jpeg_decoder decoder(device(0));
  stream reader(device(0));
  const auto decoded = world.decode(decoder, {source({.seed = 1})});
  world.driver.fail_next("event_record", cudaErrorMemoryAllocation);
  EXPECT_TRUE(code_of([&] { decoded[0].record_on(reader); }));
  const auto of_thread = stream::per_thread_default(device(0));
  world.driver.fail_next("event_record", cudaErrorMemoryAllocation);
  EXPECT_TRUE(code_of([&] { decoded[0].use_on(of_thread); }));
}

// Memory.

TEST(JpegDecoder, AllocatesFromTheMemoryOfItsOptions) {
  decoding_world world;
  const auto memory = std::make_shared<device_memory>(device(0));
  jpeg_decoder decoder(device(0), draw_on_cpu, {.memory = memory.get()});
  EXPECT_EQ(&decoder.memory(), memory.get());
  auto decoded = world.decode(decoder, {source({.seed = 1}), source({.seed = 2, .bits = 12})});
  EXPECT_EQ(memory->used_bytes(), 256u + 72u);
  decoded.clear();
  EXPECT_EQ(memory->used_bytes(), 0u);
}

TEST(JpegDecoder, KeepsPinnedMemoryOfNvjpegAndCountsIt) {
  decoding_world world;
  jpeg_decoder decoder(device(0));
  EXPECT_EQ(decoder.stats().pinned_bytes, 0u);
  (void)world.decode(decoder, {source({.seed = 1})});
  EXPECT_GT(decoder.stats().pinned_bytes, 0u);
  EXPECT_EQ(decoder.stats().pinned_bytes, world.driver.live().pinned_bytes);
  const auto pinned = world.driver.calls("host_alloc");
  (void)world.decode(decoder, {source({.seed = 1})});
  EXPECT_EQ(world.driver.calls("host_alloc"), pinned);
}

TEST(JpegDecoder, FreesPinnedMemoryThatItMayNotKeep) {
  decoding_world world;
  jpeg_decoder decoder(device(0), {}, {.keep_pinned_bytes = 1});
  for (int round = 0; round < 2; ++round) {
    expect_drawn(world.decode(decoder, {source({.seed = 1})})[0].image(), 1, {0, 0, 8, 8});
    EXPECT_EQ(decoder.stats().pinned_bytes, 0u);
    EXPECT_EQ(world.driver.live().pinned_bytes, 0u);
  }
}

// Where nvJPEG names no stream, any may use the memory until it is freed.
TEST(JpegDecoder, AllocatesForNvjpegMemoryThatAnyStreamMayUse) {
  decoding_world world;
  jpeg_decoder decoder(device(0));
  const auto memory = world.nvjpeg.memory_of_device();
  const stream user(device(0));
  std::vector<std::byte> bytes(100);
  void* any = nullptr;
  ASSERT_EQ(memory.allocate(memory.context, &any, bytes.size(), nullptr), cudaSuccess);
  ASSERT_EQ(
      api().memcpy_async(any, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, user.handle()),
      cudaSuccess);
  EXPECT_EQ(memory.deallocate(memory.context, any, bytes.size(), nullptr), cudaSuccess);
}

TEST(JpegDecoder, AllocatesForNvjpegInStreamOrder) {
  decoding_world world;
  jpeg_decoder decoder(device(0));
  const auto memory = world.nvjpeg.memory_of_device();
  const stream on(device(0));
  auto release = world.driver.block(on.handle());  // nothing waits for it
  void* any = nullptr;
  ASSERT_EQ(memory.allocate(memory.context, &any, 100, on.handle()), cudaSuccess);
  EXPECT_EQ(memory.deallocate(memory.context, any, 100, on.handle()), cudaSuccess);
  release();
}

// Images that the GPU does not decode.

TEST(JpegDecoderFallback, IsChosenForEachImage) {
  decoding_world world;
  world.nvjpeg.set_unsupported(6);
  world.nvjpeg.set_parsing(7, nvjpeg_status::bad_jpeg);
  world.nvjpeg.set_parsing(8, nvjpeg_status::jpeg_not_supported);
  jpeg_decoder decoder(device(0), draw_on_cpu, {.max_pixels = 100});
  const std::string rotation(
      "\xe1"
      "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0",
      33);
  std::vector<jpeg_source> files{source({.seed = 1}),
                                 source({.seed = 2, .components = 4}),
                                 source({.seed = 3, .bits = 12}),
                                 source({.seed = 4, .frame_marker = 0xc9}),
                                 source({.seed = 5, .ends = false}),
                                 source({.seed = 6}),
                                 source({.seed = 7}),
                                 source({.seed = 8}),
                                 source({.seed = 9, .segments = {rotation}}),
                                 source({.width = 20, .seed = 10}),
                                 jpeg_source(buffer_with("\x89PNG")),
                                 source({.seed = 12})};
  const auto decoded = world.decode(decoder, std::move(files));
  for (std::uint8_t i = 0; i < 12; ++i)
    if (i == 0 || i == 11)
      expect_drawn(decoded[i].image(), static_cast<std::uint8_t>(i + 1), {0, 0, 8, 8});
    else
      expect_drawn(decoded[i].image(), cpu_seed, {0, 0, 6, 4});
  const auto stats = decoder.stats();
  EXPECT_EQ(stats.hardware, 2u);
  EXPECT_EQ(stats.unsupported, 7u);
  EXPECT_EQ(stats.damaged, 2u);
  EXPECT_EQ(stats.rotated, 1u);
  EXPECT_EQ(stats.failed, 0u);
}

// Memory is allocated by the size of the header.
TEST(JpegDecoderFallback, IsChosenWhereNvjpegFindsAnotherSize) {
  decoding_world world;
  world.nvjpeg.set_larger(2);
  jpeg_decoder decoder(device(0), draw_on_cpu);
  std::vector<jpeg_source> files{source({.seed = 1}), source({.seed = 2})};
  const auto decoded = world.decode(decoder, std::move(files));
  expect_drawn(decoded[0].image(), 1, {0, 0, 8, 8});
  expect_drawn(decoded[1].image(), cpu_seed, {0, 0, 6, 4});
  EXPECT_EQ(decoder.stats().damaged, 1u);
}

TEST(JpegDecoderFallback, IsChosenForShortFilesThatClaimManyPixels) {
  decoding_world world;
  jpeg_decoder decoder(device(0));
  std::vector<jpeg_source> files;
  for (std::uint8_t i = 0; i < 32; ++i)
    files.push_back(i % 16 == 0 ? source({.seed = i})
                                : source({.width = 9000,
                                          .height = 9000,
                                          .seed = i,
                                          .frame_marker = i % 2 == 0 ? 0xc0 : 0xc2,
                                          .has_pixels = false}));
  const auto decoded = world.decode(decoder, std::move(files));
  for (std::uint8_t i = 0; i < 32; ++i)
    if (i % 16 == 0)
      expect_drawn(decoded[i].image(), i, {0, 0, 8, 8});
    else
      EXPECT_EQ(code_of([&] { (void)decoded[i].image(); }), errc::invalid_data);
  EXPECT_EQ(decoder.stats().damaged, 30u);
}

TEST(JpegDecoderFallback, IsChosenForWhatTurnsOutToBeDamaged) {
  decoding_world world;
  world.nvjpeg.set_decoding(2, nvjpeg_status::bad_jpeg);
  world.nvjpeg.set_decoding(4, nvjpeg_status::jpeg_not_supported);
  jpeg_decoder decoder(device(0), draw_on_cpu);
  auto files = [] {
    return std::vector{source({.seed = 1}), source({.seed = 2}), source({.seed = 3}),
                       source({.seed = 4}), source({.seed = 5})};
  };
  for (int round = 0; round < 2; ++round) {
    const auto decoded = world.decode(decoder, files());
    for (std::uint8_t i = 0; i < 5; i += 2)
      expect_drawn(decoded[i].image(), static_cast<std::uint8_t>(i + 1), {0, 0, 8, 8});
    for (std::uint8_t i = 1; i < 5; i += 2)
      expect_drawn(decoded[i].image(), cpu_seed, {0, 0, 6, 4});
  }
  EXPECT_EQ(decoder.stats().damaged, 2u);
  EXPECT_EQ(decoder.stats().unsupported, 2u);
  EXPECT_EQ(decoder.stats().hardware, 6u);
}

// A file may make nvJPEG fail itself, which says nothing of the others.
TEST(JpegDecoderFallback, IsChosenForWhatMakesNvjpegFail) {
  for (auto status : {nvjpeg_status::execution_failed, nvjpeg_status::internal_error}) {
    decoding_world world;
    world.nvjpeg.set_decoding(2, status);
    jpeg_decoder decoder(device(0), draw_on_cpu);
    for (int round = 0; round < 2; ++round) {
      const auto decoded =
          world.decode(decoder, {source({.seed = 1}), source({.seed = 2}), source({.seed = 3})});
      expect_drawn(decoded[0].image(), 1, {0, 0, 8, 8});
      expect_drawn(decoded[1].image(), cpu_seed, {0, 0, 6, 4});
      expect_drawn(decoded[2].image(), 3, {0, 0, 8, 8});
    }
    EXPECT_EQ(decoder.stats().damaged, 2u);
    EXPECT_EQ(decoder.stats().hardware, 4u);
  }
}

TEST(JpegDecoderFallback, IsNotChosenOnceTheDeviceIsLost) {
  decoding_world world;
  world.nvjpeg.set_decoding(2, nvjpeg_status::execution_failed);
  std::atomic<int> calls = 0;
  jpeg_decoder decoder(device(0), [&](const buffer& file) {
    ++calls;
    return draw_on_cpu(file);
  });
  constexpr std::array<std::size_t, 4> calls_of_decoder{1, 2, 4,
                                                        5};  // the others are of allocations
  for (auto after : calls_of_decoder) {
    SCOPED_TRACE(after);
    world.driver.fail_next("stream_synchronize", cudaErrorIllegalAddress, after);
    const auto code =
        code_of([&] { (void)world.decode(decoder, {source({.seed = 1}), source({.seed = 2})}); });
    EXPECT_EQ(code, condition::device_lost) << code.message();
  }
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(decoder.stats().damaged, 0u);
}

TEST(JpegDecoderFallback, ThatLosesTheDeviceFailsTheBatch) {
  decoding_world world;
  jpeg_decoder decoder(device(0), [](const buffer&) -> tensor {
    throw error(std::error_code(cudaErrorIllegalAddress, cuda::category()), "decode");
  });
  EXPECT_EQ(code_of([&] { (void)world.decode(decoder, {source({.seed = 1, .bits = 12})}); }),
            condition::device_lost);
}

TEST(JpegDecoderFallback, IfAbsentUnsupportedImagesFail) {
  decoding_world world;
  jpeg_decoder decoder(device(0));
  const auto decoded =
      world.decode(decoder, {source({.seed = 1}), source({.seed = 2, .bits = 12}),
                             jpeg_source(buffer_with(tiny_jpeg{.ends = false}.bytes()))});
  expect_drawn(decoded[0].image(), 1, {0, 0, 8, 8});
  EXPECT_EQ(code_of([&] { (void)decoded[1].image(); }), errc::unsupported);
  EXPECT_THAT([&] { (void)decoded[1].image(); },
              ThrowsMessage<error>(HasSubstr("decode s2.jpg: the GPU cannot decode it")));
  EXPECT_EQ(code_of([&] { (void)decoded[2].image(); }), errc::invalid_data);
  EXPECT_THAT([&] { (void)decoded[2].image(); },
              ThrowsMessage<error>(HasSubstr("decode image 2 of a batch: ")));
}

TEST(JpegDecoderFallback, ThatFailsFailsItsImageAlone) {
  decoding_world world;
  auto refuse = [](const buffer& file) -> tensor {
    if (file.text().find("\xff\xd9") == std::string_view::npos)
      throw error(errc::invalid_data, "decode JPEG", "it is cut");
    throw std::runtime_error("no such kind");
  };
  jpeg_decoder decoder(device(0), refuse);
  const auto decoded = world.decode(
      decoder,
      {source({.seed = 1, .ends = false}), source({.seed = 2}), source({.seed = 3, .bits = 12})});
  EXPECT_EQ(code_of([&] { (void)decoded[0].image(); }), errc::invalid_data);
  EXPECT_THAT([&] { (void)decoded[0].image(); },
              ThrowsMessage<error>("decode s1.jpg: decode JPEG: it is cut"));
  expect_drawn(decoded[1].image(), 2, {0, 0, 8, 8});
  EXPECT_EQ(code_of([&] { (void)decoded[2].image(); }), errc::failed);
  EXPECT_EQ(decoder.stats().failed, 2u);
}

TEST(JpegDecoderFallback, MustReturnAnImage) {
  decoding_world world;
  jpeg_decoder decoder(device(0),
                       [](const buffer&) { return tensor(element_type::f32, {2, 2, 3}); });
  const auto decoded = world.decode(decoder, {source({.seed = 3, .bits = 12})});
  EXPECT_THAT([&] { (void)decoded[0].image(); },
              ThrowsMessage<error>(HasSubstr("f32 [2, 2, 3] (cpu); it must be u8 [height, width, "
                                             "3] in host memory")));
}

TEST(JpegDecoderFallback, RunsOnSeveralThreads) {
  decoding_world world;
  std::atomic<int> calls = 0;
  auto meet = [&](const buffer& file) {
    ++calls;
    while (calls < 2) std::this_thread::yield();
    return draw_on_cpu(file);
  };
  jpeg_decoder decoder(device(0), meet);
  (void)world.decode(decoder, {source({.seed = 1, .bits = 12}), source({.seed = 2, .bits = 12})});
  EXPECT_EQ(calls, 2);
}

// Several batches at a time, and stops.

static task<> decode_round(const jpeg_decoder& decoder, std::uint8_t seed) {
  std::vector<jpeg_source> files;
  for (int i = 0; i <= seed % 5; ++i)
    files.push_back(source({.width = 4 + i, .seed = seed, .bits = i == 3 ? 12 : 8}));
  const auto decoded = co_await decoder.decode(std::move(files));
  for (int i = 0; i <= seed % 5; ++i) {
    if (i == 3)
      expect_drawn(decoded[3].image(), cpu_seed, {0, 0, 6, 4});
    else
      expect_drawn(decoded[static_cast<std::size_t>(i)].image(), seed, {0, 0, 4 + i, 8});
  }
}

static task<> decode_many(const jpeg_decoder& decoder, int batches) {
  scope children(co_await this_context());
  for (int i = 0; i < batches; ++i)
    children.start(decode_round(decoder, static_cast<std::uint8_t>(i)));
  co_await children.join();
}

TEST(JpegDecoder, DecodesSeveralBatchesAtATime) {
  decoding_world world;
  world.nvjpeg.set_unsupported_by_engines(3);
  jpeg_decoder decoder(device(0), draw_on_cpu, {.batches = 3});
  sync_wait(world.runtime, decode_many(decoder, 60));
  EXPECT_EQ(decoder.stats().unsupported, 24u);
  EXPECT_EQ(decoder.stats().failed, 0u);
}

static task<> decode_seed(const jpeg_decoder& decoder, std::uint8_t seed) {
  std::vector<jpeg_source> files;
  files.push_back(source({.seed = seed}));
  (void)co_await decoder.decode(std::move(files));
}

static task<> start_and_stop(const jpeg_decoder& decoder, fake_driver& driver, int batches) {
  scope children(co_await this_context());
  driver.hold();
  for (int i = 0; i < batches; ++i)
    children.start(decode_seed(decoder, static_cast<std::uint8_t>(i)));
  while (driver.calls("launch_host_func") < 2) std::this_thread::yield();
  children.stop();
  driver.release();
  co_await children.join();
}

TEST(JpegDecoder, AStopEndsWaitingCallsAndAwaitsTheGpu) {
  decoding_world world;
  jpeg_decoder decoder(device(0), {}, {.batches = 1});
  EXPECT_EQ(code_of([&] { sync_wait(world.runtime, start_and_stop(decoder, world.driver, 4)); }),
            errc::stopped);
  EXPECT_EQ(decoder.stats().hardware, 1u);
}

static task<> decode_others(const jpeg_decoder& decoder) {
  std::vector<jpeg_source> files;
  for (std::uint8_t i = 0; i < 5; ++i) files.push_back(source({.seed = i, .bits = 12}));
  (void)co_await decoder.decode(std::move(files));
}

static task<> decode_to_stop(const jpeg_decoder& decoder, std::function<void()>& stop) {
  scope children(co_await this_context());
  stop = [&children] { children.stop(); };
  children.start(decode_others(decoder));
  co_await children.join();
}

TEST(JpegDecoder, CallsNoDecoderOfTheCpuAfterAStop) {
  decoding_world world;
  lade::runtime one_thread({.threads = 1});
  std::function<void()> stop;
  std::atomic<int> calls = 0;
  jpeg_decoder decoder(device(0), [&](const buffer& file) {
    ++calls;
    stop();
    return draw_on_cpu(file);
  });
  EXPECT_EQ(code_of([&] { sync_wait(one_thread, decode_to_stop(decoder, stop)); }), errc::stopped);
  EXPECT_EQ(calls, 1);
}

TEST(JpegDecoder, NeedsARuntime) {
  decoding_world world;
  jpeg_decoder decoder(device(0));
  EXPECT_EQ(code_of([&] { (void)sync_wait(decoder.decode({})); }), errc::no_runtime);
}

// Failures.

TEST(JpegDecoderFailure, OfACallFailsTheBatchAndNoOther) {
  for (const char* function :
       {"decode_batched_ex", "decode_batched_initialize", "decode_params_create",
        "decode_params_set_output_format", "decode_params_set_roi", "jpeg_state_create",
        "jpeg_stream_create"}) {
    SCOPED_TRACE(function);
    decoding_world world;
    jpeg_decoder decoder(device(0), draw_on_cpu);
    world.nvjpeg.fail_next(function, nvjpeg_status::allocator_failure);
    auto decode = [&] {
      return world.decode(decoder, {source({.seed = 1}), source({.seed = 2, .bits = 12})});
    };
    EXPECT_EQ(code_of(decode), std::error_code(static_cast<int>(nvjpeg_status::allocator_failure),
                                               nvjpeg_category()));
    const auto decoded = decode();
    expect_drawn(decoded[0].image(), 1, {0, 0, 8, 8});
    expect_drawn(decoded[1].image(), cpu_seed, {0, 0, 6, 4});
  }
}

TEST(JpegDecoderFailure, OfACallOfTheDriverFailsTheBatchAndNoOther) {
  for (const char* function : {"memcpy_async", "event_record", "event_query", "malloc_async",
                               "stream_create", "event_create", "host_alloc"}) {
    SCOPED_TRACE(function);
    decoding_world world;
    jpeg_decoder decoder(device(0), draw_on_cpu);
    auto decode = [&] {
      return world.decode(decoder, {source({.seed = 1}), source({.seed = 2, .bits = 12})});
    };
    world.driver.fail_next(function, cudaErrorMemoryAllocation);
    EXPECT_TRUE(code_of(decode));
    const auto decoded = decode();
    expect_drawn(decoded[0].image(), 1, {0, 0, 8, 8});
    expect_drawn(decoded[1].image(), cpu_seed, {0, 0, 6, 4});
  }
}

TEST(JpegDecoderFailure, OfTheDeviceIsOfCuda) {
  fake_driver driver;
  fake_nvjpeg nvjpeg(driver);
  lade::runtime runtime({.threads = 2});
  jpeg_decoder decoder(device(0), draw_on_cpu);
  driver.hold();
  std::thread breaks([&] {
    while (driver.calls("launch_host_func") < 1) std::this_thread::yield();
    driver.break_device(cudaErrorIllegalAddress);
  });
  std::vector<jpeg_source> files;
  files.push_back(source({.seed = 1}));
  const auto code = code_of([&] { (void)sync_wait(runtime, decoder.decode(std::move(files))); });
  breaks.join();
  EXPECT_EQ(code, condition::device_lost) << code.message();
}

TEST(JpegDecoderFailure, ToStartIsThrownByTheConstructor) {
  fake_driver driver;
  fake_nvjpeg nvjpeg(driver);
  nvjpeg.fail_next("create", nvjpeg_status::not_initialized);
  EXPECT_THAT([] { jpeg_decoder(device(0)); },
              ThrowsMessage<error>("start nvJPEG: NVJPEG_STATUS_NOT_INITIALIZED"));
  nvjpeg.fail_next("create_engines", nvjpeg_status::execution_failed);
  EXPECT_THAT([] { jpeg_decoder(device(0)); },
              ThrowsMessage<error>("start nvJPEG: NVJPEG_STATUS_EXECUTION_FAILED"));
  EXPECT_EQ(nvjpeg.live_objects(), 0u);
}

TEST(JpegDecoderFailure, OfOptionsNamesThem) {
  fake_driver driver({.devices = 2});
  fake_nvjpeg nvjpeg(driver);
  device_memory other(device(1));
  EXPECT_THAT([] { jpeg_decoder(device(0), {}, {.batches = 0}); },
              ThrowsMessage<error>(HasSubstr("make a JPEG decoder: batches is 0")));
  EXPECT_THAT([] { jpeg_decoder(device(0), {}, {.max_pixels = 0}); },
              ThrowsMessage<error>(HasSubstr("make a JPEG decoder: max_pixels is 0")));
  EXPECT_THAT([&] { jpeg_decoder(device(0), {}, {.memory = &other}); },
              ThrowsMessage<error>(HasSubstr("memory is cuda:1; it must be memory of GPU 0")));
}

// Where there is an nvJPEG, it has all functions of the table.
TEST(Nvjpeg, IsLoadedOrNamesWhatWasTried) {
  try {
    EXPECT_TRUE(nvjpeg().decode_batched_ex);
    std::puts("nvJPEG is loaded");
  } catch (const error& missing) {
    EXPECT_EQ(missing.code(), errc::unsupported);
    EXPECT_THAT(missing.what(), HasSubstr("load nvJPEG: libnvjpeg.so.13: cannot open"));
    EXPECT_THAT(missing.what(), HasSubstr("libnvjpeg.so.12: cannot open"));
    fake_driver driver;
    EXPECT_EQ(code_of([] { jpeg_decoder(device(0)); }), errc::unsupported);
  }
}

TEST(JpegDecoder, SurvivesRandomBatches) {
  const auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  decoding_world world;
  for (std::uint8_t i = 0; i < 40; ++i) {
    if (i % 8 == 1) world.nvjpeg.set_unsupported_by_engines(i);
    if (i % 8 == 3) world.nvjpeg.set_decoding(i, nvjpeg_status::bad_jpeg);
    if (i % 8 == 5) world.nvjpeg.set_parsing(i, nvjpeg_status::bad_jpeg);
    if (i % 8 == 7) world.nvjpeg.set_decoding(i, nvjpeg_status::execution_failed);
  }
  jpeg_decoder decoder(device(0), draw_on_cpu, {.batches = 2});
  for (int round = 0; round < 30; ++round) {
    std::vector<jpeg_source> files;
    std::vector<std::uint8_t> seeds;
    for (auto left = random() % 12; left > 0; --left) {
      seeds.push_back(static_cast<std::uint8_t>(random() % 40));
      files.push_back(source({.seed = seeds.back()}));
    }
    const auto decoded = world.decode(decoder, std::move(files));
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      const bool by_cpu = seeds[i] % 8 > 2 && seeds[i] % 2 == 1;
      expect_drawn(decoded[i].image(), by_cpu ? cpu_seed : seeds[i],
                   by_cpu ? jpeg_region{0, 0, 6, 4} : jpeg_region{0, 0, 8, 8});
    }
  }
}

}  // namespace lade::cuda::jpeg_decoder_test
