#include <lade/cuda/error.hpp>
#include <lade/cuda/nvdec/capabilities.hpp>
#include <lade/cuda/nvdec/surfaces.hpp>
#include <lade/error.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "../../../cuda/nvdec/decoder_cache.hpp"
#include "../../../cuda/nvdec/surface_decoder.hpp"
#include "../../media/av/media_files.hpp"
#include "../../support/coroutines.hpp"
#include "../../support/seed.hpp"
#include "../fake_driver.hpp"
#include "../worlds.hpp"
#include "coded_videos.hpp"
#include "fake_gpu.hpp"
#include "host_surfaces.hpp"

extern "C" {
#include <libavcodec/packet.h>
}

namespace lade::cuda::surfaces_test {

using media::video_recipe;
using testing::HasSubstr;
using testing_support::code_of;

static media::video video_of(const std::string& recipe) {
  return media::video(media::read_bytes(media::video_path(video_recipe(recipe))), recipe);
}

static std::vector<std::int64_t> all_of(const media::video& of) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(of.size()));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// What NVDEC decodes, in the order in which it shows it.
static std::vector<std::pair<std::int64_t, host_picture>> decode_on(
    runtime& in, const media::video& from, const std::vector<std::int64_t>& numbers,
    const surface_options& options = {}) {
  const auto depth = fake_nvcuvid::depth();
  stream work(device(0));
  std::vector<std::pair<std::int64_t, surface_copy>> copies;
  use_surface copy = [&](std::int64_t number, const surface& decoded) {
    copies.emplace_back(number, surface_copy(decoded, work));
  };
  sync_wait(in, decode_surfaces(from, numbers, work, copy, options));
  std::vector<std::pair<std::int64_t, host_picture>> pictures;
  for (const auto& [number, copied] : copies) pictures.emplace_back(number, copied.picture());
  EXPECT_EQ(fake_nvcuvid::depth(), depth);
  return pictures;
}

// The same, decoded by the CPU; with a crop or a size, cropped and resized as fake_nvcuvid does.
static std::vector<std::pair<std::int64_t, host_picture>> decode_on_cpu(
    const media::video& from, const std::vector<std::int64_t>& numbers,
    const surface_options& options = {}) {
  std::vector<std::pair<std::int64_t, host_picture>> pictures;
  from.for_each_frame(numbers, [&](std::int64_t number, const media::frame& decoded) {
    auto part = options.crop;
    if (part.width == 0) part = {.width = decoded.get().width, .height = decoded.get().height};
    const int width = options.width > 0 ? options.width : part.width;
    const int height = options.height > 0 ? options.height : part.height;
    pictures.emplace_back(number, picture_of_frame(decoded, part, width, height));
  });
  return pictures;
}

static std::vector<std::int64_t> numbers_of(
    const std::vector<std::pair<std::int64_t, host_picture>>& pictures) {
  std::vector<std::int64_t> numbers;
  for (const auto& [number, picture] : pictures) numbers.push_back(number);
  return numbers;
}

using decoded_case = std::tuple<driver_kind, const char*>;

class NvdecSurfaces : public testing::TestWithParam<decoded_case> {
 protected:
  void SetUp() override {
    if (std::get<0>(GetParam()) == driver_kind::fake)
      fake_ = std::make_unique<fake_gpu>();
    else
      skip_without_nvdec();
  }
  void skip_without_nvdec() {
    if (device::count() == 0) GTEST_SKIP() << device::why_none();
    const auto coding = from_.stream().codec();
    if (limits_of(device(0), {.codec = coding}).engines == 0) GTEST_SKIP() << "no " << coding;
    if (std::string(std::get<1>(GetParam())) == "h264-444.mkv")
      GTEST_SKIP() << "NVDEC has no 4:4:4 of H.264";
  }

  media::video from_ = video_of(std::get<1>(GetParam()));
  std::unique_ptr<fake_gpu> fake_;
};

TEST_P(NvdecSurfaces, EqualThoseOfTheCpu) {
  runtime runtime({.threads = 2});
  const auto numbers = all_of(from_);
  const auto decoded = decode_on(runtime, from_, numbers);
  EXPECT_EQ(numbers_of(decoded), numbers);
  EXPECT_TRUE(decoded == decode_on_cpu(from_, numbers));
}

TEST_P(NvdecSurfaces, OfSomeFramesEqualThoseOfTheCpu) {
  runtime runtime({.threads = 2});
  const auto last = from_.size() - 1;
  for (const auto& numbers :
       std::vector<std::vector<std::int64_t>>{{0}, {7, 3}, {13, 14, 22}, {last}}) {
    auto sorted = numbers;
    std::ranges::sort(sorted);
    EXPECT_TRUE(decode_on(runtime, from_, numbers) == decode_on_cpu(from_, sorted));
  }
}

TEST_P(NvdecSurfaces, OfACropAreThatPartOfThoseOfTheCpu) {
  runtime runtime({.threads = 2});
  for (const surface_region& crop :
       std::vector<surface_region>{{}, {32, 16, 96, 48}, {2, 4, 48, 16}, {128, 80, 48, 16}}) {
    const surface_options options{.crop = crop};
    EXPECT_TRUE(decode_on(runtime, from_, {3, 14}, options) ==
                decode_on_cpu(from_, {3, 14}, options));
  }
}

static std::string name_of_case(const testing::TestParamInfo<decoded_case>& of) {
  std::string name;
  for (const char each : std::string(std::get<1>(of.param)))
    if (std::isalnum(static_cast<unsigned char>(each)) != 0) name += each;
  return name;
}

static auto decoded_videos() {
  return testing::Values("h264.mp4", "h264-long-gop.mp4", "h264-open-gop.mp4",
                         "h264-interlaced.mp4", "h264.ts", "h264-444.mkv", "hevc.mp4",
                         "hevc-closed.mkv", "mpeg2.mkv", "late-start.mp4", "h264-negative.mp4",
                         "h264-cut.mp4", "vp8.webm", "vp9.webm", "av1.mp4", "av1-10.webm");
}
INSTANTIATE_TEST_SUITE_P(Fake, NvdecSurfaces,
                         testing::Combine(testing::Values(driver_kind::fake), decoded_videos()),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Gpu, NvdecSurfaces,
                         testing::Combine(testing::Values(driver_kind::real), decoded_videos()),
                         name_of_case);

// Decodes all frames of "h264.mp4", and whether they are those of the CPU.
static bool decodes_well(runtime& in, const surface_options& options = {}) {
  const auto from = video_of("h264.mp4");
  return decode_on(in, from, all_of(from), options) == decode_on_cpu(from, all_of(from));
}

TEST(NvdecDecoders, AreUsedAgainByLaterVideos) {
  fake_gpu gpu;
  {
    runtime runtime({.threads = 2});
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(decodes_well(runtime));
    const auto counted = decoders_of(runtime, device(0));
    EXPECT_EQ(counted.sessions, 2);
    EXPECT_EQ(counted.created, 1u);
    EXPECT_EQ(counted.reused, 2u);
  }
  EXPECT_EQ(gpu.nvdec.calls("destroy_decoder"), 1u);
}

static void decode_resized(runtime& in, int width) {
  const auto from = video_of("h264.mp4");
  const surface_options options{.width = width, .height = 64};
  EXPECT_TRUE(decode_on(in, from, {0}, options) == decode_on_cpu(from, {0}, options));
}

static void decode_cropped(runtime& in, const surface_region& crop, int width = 0) {
  const auto from = video_of("h264.mp4");
  const surface_options options{.crop = crop, .width = width, .height = width};
  EXPECT_TRUE(decode_on(in, from, {5}, options) == decode_on_cpu(from, {5}, options));
}

TEST(NvdecDecoders, CropBeforeTheyResize) {
  fake_gpu gpu;
  runtime runtime({.threads = 2});
  for (const int width : {16, 64, 200}) decode_cropped(runtime, {10, 20, 100, 50}, width);
}

TEST(NvdecDecoders, OfEachCropAreKept) {
  fake_gpu gpu;
  runtime runtime({.threads = 2});
  for (int round = 0; round < 2; ++round)
    for (const int left : {0, 2, 40}) decode_cropped(runtime, {left, 8, 64, 48});
  EXPECT_EQ(decoders_of(runtime, device(0)).created, 3u);
  EXPECT_EQ(decoders_of(runtime, device(0)).reused, 3u);
}

TEST(NvdecDecoders, AreReconfiguredForOtherCrops) {
  fake_gpu gpu;
  runtime runtime({.threads = 2});
  for (const int left : {0, 2, 4, 6, 8, 10}) decode_cropped(runtime, {left, 8, 64, 48});
  EXPECT_TRUE(decodes_well(runtime));
  EXPECT_EQ(decoders_of(runtime, device(0)).created, 4u);
  EXPECT_EQ(decoders_of(runtime, device(0)).reconfigured, 3u);
}

TEST(NvdecSurface, SaysWhereItBeginsInTheMemoryOfItsDecoder) {
  fake_gpu gpu;
  runtime runtime({.threads = 2});
  const media::media_recipe recipe{
      "h264-offset.mp4",
      "-i {} -c copy -bsf:v h264_metadata=crop_left=6:crop_right=14:crop_top=4:crop_bottom=14",
      "h264.mp4"};
  const media::video from(media::read_bytes(media::video_path(recipe)), recipe.file);
  for (const surface_region& crop : std::vector<surface_region>{{}, {8, 2, 64, 48}}) {
    stream work(device(0));
    std::vector<surface> seen;
    use_surface use = [&](std::int64_t, const surface& decoded) { seen.push_back(decoded); };
    sync_wait(runtime, decode_surfaces(from, {0}, work, use, {.crop = crop}));
    ASSERT_EQ(seen.size(), 1u);
    const bool whole = crop.width == 0;
    EXPECT_EQ(seen[0].left, whole ? 6 : 0);
    EXPECT_EQ(seen[0].top, whole ? 4 : 0);
    EXPECT_EQ(seen[0].width, whole ? 172 : 64);
    EXPECT_EQ(seen[0].height, whole ? 94 : 48);
  }
}

// The same coded pictures, of which less is shown.
TEST(NvdecSurfaces, BeginWhereTheDisplayRectangleDoes) {
  fake_gpu gpu;
  runtime runtime({.threads = 2});
  const char* h264 =
      "-i {} -c copy -bsf:v h264_metadata=crop_left=6:crop_right=14:crop_top=4:crop_bottom=14";
  const char* hevc =
      "-i {} -c copy -bsf:v hevc_metadata=crop_left=6:crop_right=6:crop_top=4:crop_bottom=6";
  for (const media::media_recipe& recipe : std::vector<media::media_recipe>{
           {"h264-offset.mp4", h264, "h264.mp4"}, {"hevc-offset.mp4", hevc, "hevc.mp4"}}) {
    SCOPED_TRACE(recipe.file);
    const media::video from(media::read_bytes(media::video_path(recipe)), recipe.file);
    const auto whole = video_of(recipe.from);
    const std::vector<std::int64_t> numbers{0, 7, 20};
    EXPECT_TRUE(decode_on(runtime, from, numbers) ==
                decode_on_cpu(whole, numbers, {.crop = {6, 4, 172, 94}}));
    EXPECT_TRUE(decode_on(runtime, from, numbers, {.crop = {8, 2, 64, 48}}) ==
                decode_on_cpu(whole, numbers, {.crop = {14, 6, 64, 48}}));
    EXPECT_TRUE(
        decode_on(runtime, from, numbers, {.crop = {8, 2, 64, 48}, .width = 32, .height = 96}) ==
        decode_on_cpu(whole, numbers, {.crop = {14, 6, 64, 48}, .width = 32, .height = 96}));
  }
}

class NvdecDepths : public testing::TestWithParam<std::tuple<driver_kind, coded_video>> {};

TEST_P(NvdecDepths, AreThoseOfTheCpu) {
  const auto& [kind, video] = GetParam();
  std::unique_ptr<fake_gpu> fake;
  if (kind == driver_kind::fake) fake = std::make_unique<fake_gpu>();
  if (!fake) skip_if_not_decoded(video);
  if (IsSkipped()) return;
  runtime runtime({.threads = 2});
  const media::video from(media::read_bytes(video.path()), video.recipe.file);
  const auto decoded = decode_on(runtime, from, all_of(from));
  EXPECT_EQ(decoded.size(), 50u);
  EXPECT_TRUE(decoded == decode_on_cpu(from, all_of(from)));
}

static std::string name_of_depth(
    const testing::TestParamInfo<std::tuple<driver_kind, coded_video>>& of) {
  return name_of_coded(std::get<1>(of.param));
}

INSTANTIATE_TEST_SUITE_P(Fake, NvdecDepths,
                         testing::Combine(testing::Values(driver_kind::fake),
                                          testing::ValuesIn(deep_videos())),
                         name_of_depth);
INSTANTIATE_TEST_SUITE_P(Gpu, NvdecDepths,
                         testing::Combine(testing::Values(driver_kind::real),
                                          testing::ValuesIn(deep_videos())),
                         name_of_depth);

TEST(NvdecDecoders, OfEachSizeThatIsAskedForAreKept) {
  fake_gpu gpu;
  runtime runtime({.threads = 2});
  for (const int width : {192, 194, 192, 194}) decode_resized(runtime, width);
  EXPECT_EQ(decoders_of(runtime, device(0)).created, 2u);
  EXPECT_EQ(decoders_of(runtime, device(0)).reused, 2u);
}

TEST(NvdecDecoders, AreReconfiguredWhereTooManyAreKept) {
  fake_gpu gpu;
  runtime runtime({.threads = 2});
  for (const int width : {192, 194, 196, 198, 200, 202, 194}) decode_resized(runtime, width);
  EXPECT_TRUE(decodes_well(runtime));
  const auto counted = decoders_of(runtime, device(0));
  EXPECT_EQ(counted.created, 4u);
  EXPECT_EQ(counted.reconfigured, 4u);
}

TEST(NvdecDecoders, AreReplacedWhereTheyCannotBeReconfigured) {
  fake_gpu gpu;
  runtime runtime({.threads = 2});
  for (const int width : {192, 194, 196, 198}) decode_resized(runtime, width);
  gpu.nvdec.fail_next("reconfigure_decoder", CUDA_ERROR_NOT_SUPPORTED);
  decode_resized(runtime, 200);
  const auto counted = decoders_of(runtime, device(0));
  EXPECT_EQ(counted.created, 5u);
  EXPECT_EQ(counted.reconfigured, 0u);
}

// Each field of the format that a decoder is made for distinguishes it from others.
TEST(NvdecDecoders, OfFormatsWithAnyDifferenceAreSeparate) {
  fake_gpu gpu;
  const auto context = std::make_shared<const primary_context>(device(0));
  const auto counters = std::make_shared<decoder_counters>();
  decoder_cache cache(context, counters, 32);
  const decoder_format first{.coded_width = 192,
                             .coded_height = 112,
                             .display = {0, 0, 178, 98},
                             .target_width = 64,
                             .target_height = 48,
                             .decode_surfaces = 5,
                             .output_surfaces = 2};
  std::vector<decoder_format> formats(15, first);
  formats[1].codec = cudaVideoCodec_HEVC;
  formats[2].chroma = cudaVideoChromaFormat_444;
  formats[3].output = cudaVideoSurfaceFormat_P016;
  formats[4].bits = 10;
  formats[5].coded_width = 208;
  formats[6].coded_height = 128;
  formats[7].display.left = 2;
  formats[8].display.bottom = 96;
  formats[9].target_width = 66;
  formats[10].decode_surfaces = 6;
  formats[11].output_surfaces = 3;
  formats[12].display.top = 2;
  formats[13].display.right = 176;
  formats[14].target_height = 50;
  for (std::uint64_t made = 1; const auto& each : formats) {
    auto taken = cache.take(each);
    EXPECT_EQ(taken->format(), each);
    EXPECT_EQ(counters->created, made++);
    cache.give_back(std::move(taken));
  }
  for (const auto& each : formats) EXPECT_EQ(cache.take(each)->format(), each);
  EXPECT_EQ(counters->reused, formats.size());
}

// Starts to decode on a separate thread; its stream is blocked until open() is called.
class blocked_decoding {
 public:
  blocked_decoding(fake_gpu& gpu, runtime& in, const surface_options& options)
      : from_(video_of("h264.mp4")), work_(device(0)), open_(gpu.driver.block(work_.handle())) {
    copy_ = [this](std::int64_t number, const surface& decoded) {
      copies_.emplace_back(number, surface_copy(decoded, work_));
    };
    thread_ = std::thread([this, &in, options] {
      code_ = code_of([&] {
        sync_wait(in, decode_surfaces(from_, all_of(from_), work_, copy_, options),
                  stop_.get_token());
      });
      has_ended_ = true;
    });
  }

  void open() { open_(); }
  void stop() { stop_.request_stop(); }
  bool has_ended() const { return has_ended_; }
  std::error_code join() {
    thread_.join();
    return code_;
  }
  bool has_all() const {
    std::vector<std::pair<std::int64_t, host_picture>> pictures;
    for (const auto& [number, copied] : copies_) pictures.emplace_back(number, copied.picture());
    return pictures == decode_on_cpu(from_, all_of(from_));
  }

 private:
  media::video from_;
  stream work_;
  std::function<void()> open_;
  std::vector<std::pair<std::int64_t, surface_copy>> copies_;
  use_surface copy_;
  std::stop_source stop_;
  std::error_code code_;
  std::atomic<bool> has_ended_ = false;
  std::thread thread_;
};

static void until_mapped(const fake_gpu& gpu, std::size_t count) {
  while (gpu.nvdec.calls("map_frame") < count) std::this_thread::yield();
}

TEST(NvdecSurface, IsUnmappedWhenTheStreamHasPassedIt) {
  for (const int surfaces : {1, 3}) {
    fake_gpu gpu;
    runtime runtime({.threads = 2});
    blocked_decoding decoding(gpu, runtime, {.surfaces = surfaces});
    until_mapped(gpu, static_cast<std::size_t>(surfaces));
    EXPECT_EQ(gpu.nvdec.calls("unmap_frame"), 0u);
    decoding.open();
    EXPECT_EQ(decoding.join(), std::error_code());
    EXPECT_TRUE(decoding.has_all());
    EXPECT_EQ(gpu.nvdec.calls("unmap_frame"), gpu.nvdec.calls("map_frame"));
  }
}

// Until the driver is to call back so often, or nothing more comes: once for each mapped picture,
// which the fake fills so, and for each event that is awaited.
static void until_called_back(const fake_gpu& gpu, const blocked_decoding& decoding,
                              std::size_t count) {
  while (gpu.driver.calls("launch_host_func") < count && !decoding.has_ended() &&
         gpu.driver.calls("event_synchronize") == 0)
    std::this_thread::yield();
}

TEST(NvdecSurface, IsAwaitedByNoThread) {
  fake_gpu gpu;
  runtime runtime({.threads = 2});
  blocked_decoding decoding(gpu, runtime, {.surfaces = 2});
  until_called_back(gpu, decoding, 3);
  EXPECT_EQ(gpu.driver.calls("event_synchronize"), 0u);
  decoding.open();
  EXPECT_EQ(decoding.join(), std::error_code());
}

// The stop arrives while a surface is awaited. The stream continues once the end waits for both,
// which blocks no thread.
TEST(NvdecSurface, IsUnmappedAfterAStop) {
  fake_gpu gpu;
  runtime runtime({.threads = 2});
  blocked_decoding decoding(gpu, runtime, {.surfaces = 2});
  until_called_back(gpu, decoding, 3);
  decoding.stop();
  until_called_back(gpu, decoding, 4);
  EXPECT_EQ(gpu.driver.calls("event_synchronize"), 0u);
  decoding.open();
  EXPECT_EQ(decoding.join(), errc::stopped);
  EXPECT_EQ(gpu.nvdec.live().mapped, 0u);
  EXPECT_TRUE(decodes_well(runtime, {.surfaces = 2}));
  EXPECT_EQ(decoders_of(runtime, device(0)).created, 1u);
}

TEST(NvdecSurface, IsUnmappedAfterAFailureOfItsUser) {
  fake_gpu gpu;
  runtime runtime({.threads = 2});
  stream work(device(0));
  const auto from = video_of("h264.mp4");
  int uses = 0;
  use_surface fail = [&](std::int64_t, const surface&) {
    if (++uses == 3) throw error(errc::changed, "use a surface");
  };
  EXPECT_EQ(code_of([&] { sync_wait(runtime, decode_surfaces(from, all_of(from), work, fail)); }),
            errc::changed);
  EXPECT_EQ(uses, 3);
  EXPECT_TRUE(decodes_well(runtime));
  EXPECT_EQ(decoders_of(runtime, device(0)).created, 1u);
}

TEST(NvdecSurface, IsAbandonedWithItsDecoderWhenTheDeviceFails) {
  fake_gpu gpu;
  gpu.abandoned = 1;
  runtime runtime({.threads = 2});
  const device first(0);
  stream work(first);
  const auto from = video_of("h264.mp4");
  int uses = 0;
  use_surface fail = [&](std::int64_t, const surface&) {
    if (++uses == 3) gpu.driver.break_device(cudaErrorIllegalAddress);
  };
  EXPECT_EQ(code_of([&] { sync_wait(runtime, decode_surfaces(from, all_of(from), work, fail)); }),
            std::error_code(cudaErrorIllegalAddress, category()));
  EXPECT_EQ(decoders_of(runtime, first).abandoned, 1u);
}

TEST(NvdecDecoders, AreAbandonedWhereTheirContextIsLost) {
  fake_gpu gpu;
  gpu.abandoned = 1;
  {
    runtime runtime({.threads = 2});
    EXPECT_TRUE(decodes_well(runtime));
    gpu.nvdec.lose_context();
  }
  EXPECT_EQ(gpu.nvdec.calls("destroy_decoder"), 0u);
}

// Each call may fail at any time. What is decoded afterwards is whole, and nothing is lost but a
// surface that cannot be unmapped, with its decoder.
TEST(NvdecDecoders, SurviveEachFailureOfTheDriver) {
  for (const std::string function :
       {"init", "device_get", "retain_context", "push_context", "get_decoder_caps",
        "create_decoder", "decode_picture", "map_frame", "unmap_frame", "create_parser",
        "parse_data", "destroy_decoder", "get_decode_status"}) {
    for (const std::size_t after : {0U, 1U, 7U}) {
      SCOPED_TRACE(function + " after " + std::to_string(after));
      fake_gpu gpu;
      {
        runtime runtime({.threads = 2});
        gpu.nvdec.fail_next(function, CUDA_ERROR_UNKNOWN, after);
        int failures = 0;
        for (int i = 0; i < 3; ++i) {
          bool is_whole = false;
          const auto code = code_of([&] { is_whole = decodes_well(runtime); });
          EXPECT_TRUE(is_whole || code.value() == CUDA_ERROR_UNKNOWN || code == errc::unsupported);
          if (code) ++failures;
        }
        EXPECT_LE(failures, 1);
      }
      gpu.abandoned = gpu.nvdec.live().decoders;
      EXPECT_LE(gpu.abandoned, function == "unmap_frame" || function == "push_context" ||
                                       function == "destroy_decoder"
                                   ? 1u
                                   : 0u);
    }
  }
}

// Each call for a stream or an event may run out of memory, too. No decoder is lost by that.
TEST(NvdecDecoders, AreKeptAfterFailuresOfStreamsThatPass) {
  const auto from = video_of("h264.mp4");
  for (const std::string function : {"stream_create", "event_create", "event_record", "event_query",
                                     "stream_wait_event", "launch_host_func"}) {
    for (const std::size_t after : {0U, 2U, 20U}) {
      SCOPED_TRACE(function + " after " + std::to_string(after));
      fake_gpu gpu;
      runtime runtime({.threads = 2});
      gpu.driver.fail_next(function, cudaErrorMemoryAllocation, after);
      const auto code = code_of([&] { (void)decode_on(runtime, from, all_of(from)); });
      EXPECT_TRUE(!code || code.value() == cudaErrorMemoryAllocation ||
                  code.value() == CUDA_ERROR_UNKNOWN)
          << code.message();
      gpu.driver.fail_no_more();
      EXPECT_TRUE(decodes_well(runtime));
      EXPECT_EQ(decoders_of(runtime, device(0)).abandoned, 0u);
    }
  }
}

TEST(NvdecDecoders, AreKeptWhereTheDriverCannotCallBack) {
  fake_gpu gpu;
  runtime runtime({.threads = 2});
  gpu.driver.fail_next("launch_host_func", cudaErrorMemoryAllocation, 3);
  blocked_decoding decoding(gpu, runtime, {.surfaces = 2});
  until_called_back(gpu, decoding, 3);
  decoding.stop();
  until_called_back(gpu, decoding, 5);  // so a thread waits
  decoding.open();
  EXPECT_EQ(decoding.join(), errc::stopped);
  EXPECT_TRUE(decodes_well(runtime, {.surfaces = 2}));
  EXPECT_EQ(decoders_of(runtime, device(0)).created, 1u);
}

// What decode_surfaces says of a video that it leaves to the CPU.
static std::string refusal_of(runtime& in, const media::video& from) {
  try {
    (void)decode_on(in, from, all_of(from));
  } catch (const error& refused) {
    return refused.code() == errc::unsupported ? refused.what() : "another error";
  }
  return "";
}
static std::string refusal_of(runtime& in, const std::string& recipe) {
  return refusal_of(in, video_of(recipe));
}

TEST(NvdecSurfaces, OfVideosThatNvdecCannotDecodeAreRefused) {
  fake_gpu gpu({.max_width = 128, .refused = {cudaVideoCodec_HEVC}});
  runtime runtime({.threads = 2});
  EXPECT_THAT(refusal_of(runtime, "hevc.mp4"), HasSubstr("does not decode hevc 4:2:0"));
  EXPECT_THAT(refusal_of(runtime, "h264.mp4"), HasSubstr("at most 128 x 4096"));
  EXPECT_THAT(refusal_of(runtime, "mpeg4.avi"), HasSubstr("does not decode the codec"));
  EXPECT_EQ(gpu.nvdec.calls("create_decoder"), 0u);
}

TEST(NvdecSurfaces, OfVideosThatCannotBeMappedOrSoughtAreRefused) {
  fake_gpu gpu({.min_width = 64, .min_height = 64});
  runtime runtime({.threads = 2});
  EXPECT_THAT(refusal_of(runtime, "h264-422-10.mkv"), HasSubstr("h264 4:2:2 with 10 bits"));
  EXPECT_THAT(refusal_of(runtime, "h264-repeated-times.mkv"), HasSubstr("by their times"));
  EXPECT_TRUE(decodes_well(runtime));
}

TEST(NvdecSurfaces, OfMoreMacroblocksThanNvdecDecodesAreRefused) {
  fake_gpu gpu({.max_macroblocks = 12 * 7 - 1});
  runtime runtime({.threads = 2});
  EXPECT_THAT(refusal_of(runtime, "h264.mp4"), HasSubstr("and 83 macroblocks, not 192 x 112"));
}

TEST(NvdecSurfaces, ThatTheGpuCannotMapAreRefused) {
  fake_gpu gpu({.output_formats = 15U & ~(1U << cudaVideoSurfaceFormat_NV12)});
  runtime runtime({.threads = 2});
  EXPECT_THAT(refusal_of(runtime, "h264.mp4"), HasSubstr("does not decode h264 4:2:0"));
  EXPECT_EQ(gpu.nvdec.calls("create_decoder"), 0u);
}

TEST(NvdecSurfaces, OfRedGreenAndBlueAreRefused) {
  fake_gpu gpu;
  runtime runtime({.threads = 2});
  const media::media_recipe rgb{
      "h264-rgb.mkv", "-i {} -c copy -bsf:v h264_metadata=matrix_coefficients=0", "h264-444.mkv"};
  const media::video from(media::read_bytes(media::video_path(rgb)), rgb.file);
  EXPECT_THAT(refusal_of(runtime, from), HasSubstr("may be red, green and blue"));
}

// What decode_surfaces says of a sequence that the parser describes otherwise.
static std::string refusal_of_changed(const std::function<void(CUVIDEOFORMAT&)>& change) {
  fake_gpu gpu({.change = change});
  runtime runtime({.threads = 2});
  const auto refusal = refusal_of(runtime, "h264.mp4");
  EXPECT_EQ(gpu.nvdec.calls("map_frame"), 0u);
  return refusal;
}

TEST(NvdecSurfaces, ThatBeginInsideOfAChromaSampleAreRefused) {
  EXPECT_THAT(refusal_of_changed([](auto& sequence) { sequence.display_area.left = 1; }),
              HasSubstr("begins inside of a chroma sample"));
  EXPECT_THAT(refusal_of_changed([](auto& sequence) { sequence.display_area.top = 3; }),
              HasSubstr("begins inside of a chroma sample"));
}

TEST(NvdecSurfaces, OfLumaAndChromaWithDifferentDepthsAreRefused) {
  EXPECT_THAT(refusal_of_changed([](auto& sequence) { sequence.bit_depth_chroma_minus8 = 2; }),
              HasSubstr("luma and chroma have different depths"));
}

TEST(NvdecSurfaces, WhoseDisplayRectangleIsOutsideOfThePictureAreDamaged) {
  using area = decltype(CUVIDEOFORMAT::display_area);
  for (const area& outside : std::vector<area>{{-2, 0, 178, 98},
                                               {0, -2, 178, 98},
                                               {0, 0, 194, 98},
                                               {0, 0, 178, 114},
                                               {64, 0, 64, 98},
                                               {0, 64, 178, 64}}) {
    fake_gpu gpu({.change = [&](auto& sequence) { sequence.display_area = outside; }});
    runtime runtime({.threads = 2});
    EXPECT_EQ(code_of([&] { (void)decodes_well(runtime); }), errc::invalid_data);
    EXPECT_EQ(gpu.nvdec.calls("create_decoder"), 0u);
  }
}

TEST(NvdecSurfaces, WhoseSizeOrCodingChangesOnTheWayAreRefused) {
  const std::vector<std::function<void(CUVIDEOFORMAT&)>> changes{
      [](auto& sequence) { sequence.coded_width += 16; },
      [](auto& sequence) { sequence.coded_height += 16; },
      [](auto& sequence) { sequence.codec = cudaVideoCodec_HEVC; },
      [](auto& sequence) { sequence.min_num_decode_surfaces += 1; }};
  for (const auto& change : changes) {
    int sequences = 0;
    fake_gpu gpu({.change = [&](auto& sequence) {
      if (++sequences == 2) change(sequence);
    }});
    runtime runtime({.threads = 2});
    const auto from = video_of("h264.mp4");
    std::string refusal;
    try {
      (void)decode_on(runtime, from, {0, 40});  // in two groups of pictures
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::unsupported);
      refusal = refused.what();
    }
    EXPECT_THAT(refusal, HasSubstr("its size or coding changes on the way"));
    EXPECT_TRUE(decodes_well(runtime));
  }
}

TEST(NvdecSurfaces, ThatNvdecReportsAsDamagedAreErrors) {
  for (const auto status : {cuvidDecodeStatus_Error, cuvidDecodeStatus_Error_Concealed}) {
    fake_gpu gpu({.status = status});
    runtime runtime({.threads = 2});
    EXPECT_EQ(code_of([&] { (void)decodes_well(runtime); }), errc::invalid_data);
    EXPECT_EQ(gpu.nvdec.calls("map_frame"), 1u);
  }
}

TEST(NvdecSurfaces, AreAcceptedIfNvdecReportsNoStatus) {
  fake_gpu gpu({.status = cuvidDecodeStatus_Invalid});
  runtime runtime({.threads = 2});
  EXPECT_TRUE(decodes_well(runtime));
}

class consumer_of_nothing final : public surface_consumer {
 public:
  bool needs(std::int64_t) const override { return false; }
  void consume(std::int64_t, const surface&) override {}
};

// Sends a packet, changed, to a decoder.
static std::error_code code_of_packet(const std::function<void(AVPacket&)>& change) {
  fake_gpu gpu;
  consumer_of_nothing nobody;
  const auto from = video_of("h264.mp4");
  surface_decoder decoder(std::make_shared<decoder_sessions>(device(0)), from.stream(),
                          stream(device(0)), {}, nobody);
  decoder.begin();
  media::av_packet changed(av_packet_clone(&from.packet_at(0).get()));
  change(*changed);
  const media::packet sent(std::move(changed));
  return code_of([&] { decoder.send(sent); });
}

TEST(NvdecPackets, IncompletePacketsAreDamaged) {
  EXPECT_EQ(code_of_packet([](AVPacket&) {}), std::error_code());
  EXPECT_EQ(code_of_packet([](AVPacket& of) { of.flags |= AV_PKT_FLAG_CORRUPT; }),
            errc::invalid_data);
}

TEST(NvdecPackets, ThatBringOtherHeadersAreRefused) {
  const auto add = [](AVPacketSideDataType type) {
    return [type](AVPacket& to) { (void)av_packet_new_side_data(&to, type, 8); };
  };
  EXPECT_EQ(code_of_packet(add(AV_PKT_DATA_SKIP_SAMPLES)), std::error_code());
  EXPECT_EQ(code_of_packet(add(AV_PKT_DATA_NEW_EXTRADATA)), errc::unsupported);
}

TEST(NvdecSurfaces, AreNotAwaitedWhereAStopIsSeenBetweenTwoPackets) {
  fake_gpu gpu;
  runtime runtime({.threads = 2});
  const auto from = video_of("h264.mp4");
  const stream work(device(0));
  std::stop_source stop;
  use_surface use = [&](std::int64_t, const surface&) { stop.request_stop(); };
  const std::vector<std::int64_t> numbers{0, 11};
  const auto decode = [&] {
    sync_wait(runtime, decode_surfaces(from, numbers, work, use, {.surfaces = 16}),
              stop.get_token());
  };
  EXPECT_EQ(code_of(decode), errc::stopped);
  EXPECT_EQ(gpu.nvdec.calls("map_frame"), 1u);
}

TEST(NvdecSurface, SaysWhatIsStatedOfItsColours) {
  fake_gpu gpu;
  runtime runtime({.threads = 2});
  const std::map<std::string, std::pair<int, bool>> expected{{"h264-601.mp4", {6, false}},
                                                             {"h264-709-full.mp4", {1, true}},
                                                             {"h264-709-in-601.mp4", {1, false}},
                                                             {"h264-in-2020.mp4", {9, false}},
                                                             {"h264-in-full.mkv", {2, true}}};
  auto videos = coloured_videos();
  for (auto& each : contradictory_videos()) videos.push_back(each);
  std::size_t seen = 0;
  for (const auto& video : videos) {
    const auto stated = expected.find(video.recipe.file);
    if (stated == expected.end()) continue;
    SCOPED_TRACE(video.recipe.file);
    const media::video from(media::read_bytes(video.path()), video.recipe.file);
    const stream work(device(0));
    use_surface use = [&](std::int64_t, const surface& decoded) {
      EXPECT_EQ(std::pair(decoded.matrix, decoded.full_range), stated->second);
      ++seen;
    };
    sync_wait(runtime, decode_surfaces(from, {0}, work, use));
  }
  EXPECT_EQ(seen, expected.size());
}

TEST(NvdecSurfaces, OfMoreThanMaxPixelsAreRefused) {
  fake_gpu gpu;
  runtime runtime({.threads = 2});
  EXPECT_EQ(code_of([&] { (void)decodes_well(runtime, {.max_pixels = 1000}); }),
            errc::limit_exceeded);
}

TEST(NvdecSurfaces, NeedOptionsThatWork) {
  fake_gpu gpu;
  runtime runtime({.threads = 2});
  for (const surface_options& wrong : std::vector<surface_options>{{.surfaces = 0},
                                                                   {.surfaces = 17},
                                                                   {.width = 64},
                                                                   {.width = 63, .height = 64},
                                                                   {.crop = {.width = 64}},
                                                                   {.crop = {.left = 2}},
                                                                   {.crop = {-2, 0, 64, 48}},
                                                                   {.crop = {1, 0, 64, 48}},
                                                                   {.crop = {0, 0, 64, 47}},
                                                                   {.crop = {116, 0, 64, 48}},
                                                                   {.crop = {0, 52, 64, 48}}})
    EXPECT_EQ(code_of([&] { (void)decodes_well(runtime, wrong); }), errc::invalid_argument);
}

TEST(NvdecSessions, AreAsManyAsThereAreEngines) {
  fake_gpu gpu({.engines = 1});
  runtime runtime({.threads = 4});
  const auto from = video_of("h264.mp4");
  const auto expected = decode_on_cpu(from, all_of(from));
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      if (decode_on(runtime, from, all_of(from)) == expected) ++good;
    });
  for (auto& each : threads) each.join();
  EXPECT_EQ(good, 4);
  EXPECT_EQ(gpu.nvdec.most_decoders(), 1u);
  EXPECT_EQ(decoders_of(runtime, device(0)).created, 1u);
}

TEST(NvdecSessions, ThatWaitAreStopped) {
  fake_gpu gpu({.engines = 1});
  runtime runtime({.threads = 4});
  blocked_decoding first(gpu, runtime, {});
  until_mapped(gpu, 1);
  blocked_decoding second(gpu, runtime, {});
  second.stop();
  EXPECT_EQ(second.join(), errc::stopped);
  second.open();
  first.open();
  EXPECT_EQ(first.join(), std::error_code());
  EXPECT_TRUE(first.has_all());
}

// A damaged video fails, or has all of its frames. Later ones are whole.
TEST(NvdecSurfaces, OfDamagedVideosEndInErrorsOrPictures) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto whole = media::read_bytes(media::video_path(video_recipe("h264.mp4")));
  const media::packet_index index = media::index_video(whole, "whole");
  fake_gpu gpu;
  runtime runtime({.threads = 2});
  for (int round = 0; round < 30; ++round) {
    buffer damaged(whole.size());
    std::ranges::copy(whole.bytes(), damaged.data());
    for (int i = 0; i < 4; ++i) {
      const auto& packet = index.packets()[random() % index.packets().size()];
      damaged.data()[packet.position + random() % packet.size] = std::byte(random() % 256);
    }
    const media::video from(damaged, "damaged.mp4", index);
    std::vector<std::int64_t> numbers;
    const auto code =
        code_of([&] { numbers = numbers_of(decode_on(runtime, from, all_of(from))); });
    if (code)
      EXPECT_TRUE(code == errc::invalid_data || code == errc::unsupported) << code.message();
    else
      EXPECT_EQ(numbers, all_of(from));
  }
  EXPECT_TRUE(decodes_well(runtime));
}

TEST(NvdecLimits, AreAskedForOnce) {
  fake_gpu gpu({.engines = 7});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(limits_of(device(0), {.codec = "hevc", .bits = 10}).engines, 7);
    EXPECT_EQ(limits_of(device(0), {.codec = "av1"}).max_width, 4096);
  }
  EXPECT_EQ(gpu.nvdec.calls("get_decoder_caps"), 2u);
  EXPECT_EQ(limits_of(device(0), {.codec = "theora"}), video_limits());
  EXPECT_EQ(limits_of(device(0), {.codec = "hevc", .bits = 14}), video_limits());
  EXPECT_EQ(limits_of(device(0), {.codec = "hevc", .chroma = 400}), video_limits());
  EXPECT_EQ(fake_nvcuvid::depth(), 0u);
}

static std::error_code code_without_driver() {
  fake_driver driver;
  return code_of([] { (void)limits_of(device(0), {.codec = "h264"}); });
}

// Before the first test: the module keeps for ever why there is no driver.
static const auto without_driver = code_without_driver();

TEST(NvdecLimits, AreNotKnownWithoutADriver) {
  if (device::count() > 0) GTEST_SKIP() << "there is a GPU";
  EXPECT_EQ(without_driver, errc::unsupported);
}

}  // namespace lade::cuda::surfaces_test
