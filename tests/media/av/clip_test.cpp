#include <lade/batch.hpp>
#include <lade/from.hpp>
#include <lade/io/file.hpp>
#include <lade/map.hpp>
#include <lade/media/av/clip.hpp>
#include <lade/media/av/convert.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/stop_requested.hpp>

#include "media_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace lade::media::clip_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

static sample sample_of(std::string_view file) {
  const auto path = video_path(video_recipe(file));
  return sample(path).with_data(read_bytes(path));
}

static packet_index index_of(std::string_view file) {
  const auto in = sample_of(file);
  return index_video(in.data(), in.key());
}

static std::vector<std::int64_t> numbers_of(const clip_sampling& how, std::uint64_t seed = 1) {
  random draw(seed);
  return sample_clip(index_of("h264.mp4"), how, draw);  // 50 frames, 25 per second, groups of 12
}

using numbers = std::vector<std::int64_t>;

TEST(SampleClip, FirstStartsAtTheFirstFrame) {
  EXPECT_EQ(numbers_of({.frames = 4, .position = clip_position::first, .stride = 3}),
            (numbers{0, 3, 6, 9}));
}

TEST(SampleClip, CentreLeavesEqualPartsOnBothSides) {
  EXPECT_EQ(numbers_of({.frames = 10, .position = clip_position::centre}).front(), 20);
}

TEST(SampleClip, SpreadTakesTheMiddlesOfEqualParts) {
  EXPECT_EQ(numbers_of({.frames = 5, .position = clip_position::spread}),
            (numbers{5, 15, 25, 35, 45}));
}

TEST(SampleClip, FramesPerSecondTakeTheFrameThatIsShown) {
  EXPECT_EQ(numbers_of({.frames = 4, .position = clip_position::first, .fps = 10}),
            (numbers{0, 2, 5, 7}));
  EXPECT_EQ(numbers_of({.frames = 4, .position = clip_position::first, .fps = 50}),
            (numbers{0, 0, 1, 1}));
}

TEST(SampleClip, RandomStartsWhereTheClipFits) {
  std::vector<bool> seen(50);
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const auto clip = numbers_of({.frames = 8, .stride = 2}, seed);
    ASSERT_LT(clip.back(), 50);
    EXPECT_EQ(clip.back() - clip.front(), 14);
    seen[static_cast<std::size_t>(clip.front())] = true;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 36);
}

TEST(SampleClip, RandomKeyStartsAtKeyFrames) {
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    EXPECT_EQ(numbers_of({.frames = 4, .position = clip_position::random_key}, seed)[0] % 12, 0);
}

TEST(SampleClip, FramesBehindTheEndFollowTheOption) {
  clip_sampling how{.frames = 5, .position = clip_position::first, .stride = 20};
  EXPECT_EQ(numbers_of(how), (numbers{0, 20, 40, 49, 49}));
  how.end = clip_end::loop;
  EXPECT_EQ(numbers_of(how), (numbers{0, 20, 40, 0, 20}));
  how.end = clip_end::refuse;
  EXPECT_THAT([&] { numbers_of(how); }, ThrowsMessage<error>(HasSubstr("after 3 of 5 frames")));
}

TEST(SampleClip, ThatIsShortenedHasTheFramesThatAreThere) {
  clip_sampling how{.frames = 5, .position = clip_position::first, .stride = 20};
  how.end = clip_end::shorten;
  EXPECT_EQ(numbers_of(how), (numbers{0, 20, 40}));
}

TEST(SampleClip, SpacedClipsStartAtEqualDistances) {
  const clip_sampling how{.frames = 2, .clips = 3, .position = clip_position::spaced, .stride = 10};
  EXPECT_EQ(numbers_of(how), (numbers{0, 10, 19, 29, 39, 49}));
}

TEST(SampleClip, RandomClipsOfOneVideoStartAtDifferentFrames) {
  const auto clips = numbers_of({.frames = 4, .clips = 30});
  ASSERT_EQ(clips.size(), 120U);
  std::set<std::int64_t> starts;
  for (std::size_t i = 0; i < clips.size(); i += 4) {
    starts.insert(clips[i]);
    EXPECT_EQ(clips[i + 3], clips[i] + 3);
  }
  EXPECT_GT(starts.size(), 10U);
}

TEST(SampleClip, StartsAtTheFrameThatIsShownThen) {
  EXPECT_EQ(numbers_of({.frames = 2, .start = rational(1)}), (numbers{25, 26}));
  EXPECT_EQ(numbers_of({.frames = 2, .start = rational(1039, 1000)}), (numbers{25, 26}));
  EXPECT_EQ(numbers_of({.frames = 2, .start = rational(-5)}), (numbers{0, 1}));
  EXPECT_THAT([] { numbers_of({.start = rational(2)}); },
              ThrowsMessage<error>(HasSubstr("it ends at 2 s")));
}

TEST(SampleClip, StartsAtAFrameThatIsKnown) {
  const auto index = index_of("h264.mp4");
  EXPECT_EQ(clip_from(index, {.frames = 3, .stride = 2}, 40), (numbers{40, 42, 44}));
  EXPECT_EQ(clip_from(index, {.frames = 2}, 49), (numbers{49, 49}));
  EXPECT_THROW(clip_from(index, {}, 50), error);
}

// Times of Matroska are rounded to milliseconds.
TEST(SampleClip, AtTheRateOfTheVideoHasEachFrameOnce) {
  const std::string path = media_directory / "thirty.mkv";
  media_files::run("-f lavfi -i testsrc2=size=64x48:rate=30:duration=4 -c:v ffv1 " + path);
  const auto index = index_video(read_bytes(path), path);
  random draw(1);
  const auto clip =
      sample_clip(index, {.frames = 100, .position = clip_position::first, .fps = 30}, draw);
  numbers expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(clip, expected);
}

// The unit of AVI is a frame: 0.75 s, frame 6 of the clip, is between frames 18 and 19.
TEST(SampleClip, OfACoarseUnitOfTimeHasTheFrameThatIsShown) {
  const std::string path = media_directory / "coarse.avi";
  media_files::run("-f lavfi -i testsrc2=size=64x48:rate=25:duration=2 -c:v ffv1 " + path);
  EXPECT_EQ(clip_from(index_video(read_bytes(path), path), {.frames = 8, .fps = 8}, 0),
            (numbers{0, 3, 6, 9, 12, 15, 18, 21}));
}

// Times of MP4 are exact here; those of Matroska are rounded, and of MPEG-TS at 24000/1001.
TEST(SampleClip, IsTheSameOfAllContainersOfAVideo) {
  for (const char* rate : {"30000/1001", "24000/1001", "30", "60000/1001"}) {
    const std::string mp4 = media_directory / "same.mp4";
    media_files::run("-f lavfi -i testsrc2=size=64x48:rate=" + std::string(rate) +
                     ":duration=5 -c:v libx264 -g 30 -bf 0 -pix_fmt yuv420p " + mp4);
    const auto exact = index_video(read_bytes(mp4), mp4);
    for (const char* name : {"same.mp4", "same.mkv", "same.ts"}) {
      const std::string path = media_directory / name;
      if (path != mp4) media_files::run("-i " + mp4 + " -c copy " + path);
      const auto index = index_video(read_bytes(path), path);
      ASSERT_EQ(index.size(), exact.size()) << path;
      for (const auto& fps : {rational(8), rational(25), rational(30), rational(30'000, 1'001),
                              rational(24'000, 1'001), rational(60'000, 1'001), rational(7, 3)}) {
        const clip_sampling how{.frames = 9, .fps = fps, .end = clip_end::shorten};
        for (std::int64_t first = 0; first < index.size(); ++first) {
          numbers expected{first};
          for (int i = 1; i < 9; ++i)
            if (const auto at = exact.frame_at(exact.time(first) + rational(i) / fps))
              expected.push_back(*at);
          EXPECT_EQ(clip_from(index, how, first), expected)
              << path << " of " << rate << " at " << to_string(fps) << " from " << first;
        }
        random a(1);
        random b(1);
        EXPECT_EQ(sample_clip(index, {.frames = 9, .fps = fps}, a),
                  sample_clip(exact, {.frames = 9, .fps = fps}, b))
            << path << " of " << rate << " at " << to_string(fps);
      }
    }
  }
}

// A gap changes the mean rate that MP4 states.
TEST(SampleClip, AtTheRateOfAVideoWithAGapHasEachFrameOnBothSidesOnce) {
  for (const char* name : {"gap.mp4", "gap.mkv"}) {
    const std::string path = media_directory / name;
    media_files::run(
        "-f lavfi -i testsrc2=size=64x48:rate=30:duration=4 -vf select='lt(n\\,50)+gt(n\\,70)' "
        "-fps_mode passthrough -c:v mpeg4 " +
        path);
    const auto index = index_video(read_bytes(path), path);
    for (const std::int64_t first : {0, 1, 2, 25, 55, 56, 57, 78}) {
      numbers expected(20);
      std::iota(expected.begin(), expected.end(), first);
      EXPECT_EQ(clip_from(index, {.frames = 20, .fps = 30}, first), expected) << path;
    }
  }
}

TEST(SampleClip, RatesOfTelevisionAreExactForHours) {
  const auto stream = index_of("h264.mp4").stream();
  constexpr std::int64_t hours = 10 * 3'600;
  std::vector<indexed_packet> packets;
  for (std::int64_t i = 0; i < hours; ++i)
    packets.push_back({.pts = i * stream.time_base().denominator(),
                       .duration = stream.time_base().denominator(),
                       .key = true});
  const packet_index index(stream, std::move(packets), false);
  for (const auto& fps : {rational(24'000, 1'001), rational(30'000, 1'001),
                          rational::nearest(24'000.0 / 1'001), rational::nearest(29.97)}) {
    random draw(1);
    const auto clip =
        sample_clip(index, {.frames = 50, .position = clip_position::centre, .fps = fps}, draw);
    EXPECT_EQ(clip.back() - clip.front(), 49 / 24 - (fps > 25)) << to_string(fps);
  }
}

TEST(SampleClip, OptionsThatCannotWorkAreNamed) {
  EXPECT_THAT([] { numbers_of({.frames = 0}); }, ThrowsMessage<error>(HasSubstr("frames")));
  EXPECT_THAT([] { numbers_of({.fps = -1}); }, ThrowsMessage<error>(HasSubstr("fps")));
  EXPECT_THAT([] { numbers_of({.stride = 0}); }, ThrowsMessage<error>(HasSubstr("stride")));
  EXPECT_THAT([] { numbers_of({.fps = 5, .stride = 2}); }, ThrowsMessage<error>(HasSubstr("both")));
  EXPECT_THAT([] { numbers_of({.fps = {INT64_MAX, INT64_MAX / 2}}); },
              ThrowsMessage<error>(HasSubstr("fps")));
  EXPECT_THAT([] { numbers_of({.clips = 0}); }, ThrowsMessage<error>(HasSubstr("clips")));
  EXPECT_THAT([] { numbers_of({.clips = 2, .position = clip_position::first}); },
              ThrowsMessage<error>(HasSubstr("several clips")));
  EXPECT_THAT([] { numbers_of({.clips = 2, .end = clip_end::shorten}); },
              ThrowsMessage<error>(HasSubstr("shortened")));
  EXPECT_THAT(
      [] { numbers_of({.position = clip_position{6}}); },
      ThrowsMessage<error>(HasSubstr("sample a clip: position is no value of clip_position")));
  EXPECT_THAT([] { numbers_of({.end = clip_end{4}}); },
              ThrowsMessage<error>(HasSubstr("sample a clip: end is no value of clip_end")));
}

TEST(SampleClip, OfAVideoWithoutFramesIsAnError) {
  const packet_index empty(index_of("h264.mp4").stream(), std::vector<indexed_packet>(), false);
  random draw(1);
  EXPECT_THAT([&] { sample_clip(empty, {.end = clip_end::loop}, draw); },
              ThrowsMessage<error>(HasSubstr("no frames")));
}

static bool equal(const tensor& a, const tensor& b) {
  return a.spec() == b.spec() && a.contiguous() && b.contiguous() &&
         std::memcmp(a.bytes(), b.bytes(), a.spec().bytes()) == 0;
}

constexpr clip_sampling four_frames{.frames = 4, .position = clip_position::first, .stride = 9};

TEST(DecodeClip, HasTheFramesAsToTensorMakesThem) {
  const auto in = sample_of("h264.mp4");
  const decode_clip decode({.sampling = four_frames, .width = 64, .height = 48});
  const auto clip = decode(in);
  EXPECT_EQ(clip.spec(), (tensor_spec{element_type::u8, {4, 48, 64, 3}}));
  const auto frames = video(in.data()).frames(numbers{0, 9, 18, 27});
  for (std::size_t t = 0; t < 4; ++t)
    EXPECT_TRUE(equal(clip[static_cast<std::int64_t>(t)],
                      to_tensor(frames[t], {.width = 64, .height = 48})));
}

TEST(DecodeClip, LayoutsHoldTheSamePixels) {
  const auto in = sample_of("h264.mp4");
  clip_options options{.sampling = four_frames, .width = 40, .height = 30};
  const auto thwc = decode_clip(options)(in);
  options.layout = clip_layout::tchw;
  const auto tchw = decode_clip(options)(in);
  options.layout = clip_layout::cthw;
  const auto cthw = decode_clip(options)(in);
  EXPECT_EQ(cthw.shape(), (dimensions{3, 4, 30, 40}));
  const auto at = [](const tensor& of, std::array<std::int64_t, 4> i) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < 4; ++d) offset += i[d] * of.strides()[d];
    return of.data<std::uint8_t>()[offset];
  };
  for (std::int64_t t = 0; t < 4; ++t)
    for (std::int64_t y = 0; y < 30; ++y)
      for (std::int64_t x = 0; x < 40; ++x)
        for (std::int64_t c = 0; c < 3; ++c) {
          ASSERT_EQ(at(thwc, {t, y, x, c}), at(tchw, {t, c, y, x}));
          ASSERT_EQ(at(thwc, {t, y, x, c}), at(cthw, {c, t, y, x}));
        }
}

TEST(DecodeClip, AllFramesOfAClipHaveTheSameCrop) {
  const auto in = sample_of("h264.mp4");
  // The same frame four times: all crops must be equal.
  const decode_clip decode({.sampling = {.frames = 4, .position = clip_position::first, .fps = 999},
                            .width = 32,
                            .height = 32,
                            .fit = image_fit::random_crop});
  EXPECT_TRUE(decode.is_random());
  const auto clip = decode(in, random(7));
  for (std::int64_t t = 1; t < 4; ++t) EXPECT_TRUE(equal(clip[0], clip[t]));
  EXPECT_TRUE(equal(clip, decode(in, random(7))));
  EXPECT_FALSE(equal(clip, decode(in, random(8))));
}

TEST(DecodeClip, MayHaveAlpha) {
  const decode_clip decode({.sampling = four_frames,
                            .width = 8,
                            .height = 8,
                            .colour = image_colour::rgba,
                            .layout = clip_layout::cthw});
  EXPECT_EQ(decode(sample_of("h264.mp4")).shape(), (dimensions{4, 4, 8, 8}));
  EXPECT_THROW(decode_image({.colour = image_colour::rgba}), error);
  EXPECT_THROW(decode_image({.square_pixels = true}), error);
}

TEST(DecodeClip, SeveralClipsOfAVideoAreDecodedOnce) {
  const auto in = sample_of("h264.mp4");
  clip_options options{.sampling = {.frames = 4, .clips = 3, .position = clip_position::spaced},
                       .width = 24,
                       .height = 16,
                       .layout = clip_layout::cthw};
  const auto clips = decode_clip(options)(in);
  EXPECT_EQ(clips.shape(), (dimensions{3, 3, 4, 16, 24}));
  options.sampling.clips = 1;
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto start = 46 * i / 2;
    options.sampling.start = rational(start, 25);
    EXPECT_TRUE(equal(clips[i], decode_clip(options)(in)));
  }
}

TEST(DecodeClip, StartsWhereAFieldOfTheSampleSays) {
  clip_options options{
      .sampling = {.frames = 2}, .start_field = "begin", .width = 24, .height = 16};
  const decode_clip by_field(options);
  EXPECT_FALSE(by_field.is_random());
  const auto clip = by_field(sample_of("h264.mp4").with_field(field("begin", 1.2)));
  options.start_field = {};
  options.sampling.start = rational(6, 5);
  EXPECT_TRUE(equal(clip, decode_clip(options)(sample_of("h264.mp4"))));
  EXPECT_THAT([&] { by_field(sample_of("h264.mp4")); }, ThrowsMessage<error>(HasSubstr("begin")));
}

TEST(DecodeClip, AFieldThatIsNoTimeIsNamedWithItsSample) {
  const decode_clip decode(
      {.sampling = {.frames = 2}, .start_field = "begin", .width = 8, .height = 8});
  const auto in = sample_of("h264.mp4");
  for (const double bad : {double{NAN}, double{INFINITY}, 1e300, -1e300}) try {
      (void)decode(sample(in).with_field(field("begin", bad)));
      ADD_FAILURE() << bad;
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::invalid_data);
      EXPECT_THAT(refused.what(), HasSubstr("decode " + in.name() + ": the field begin is "));
    }
}

TEST(DecodeClip, ThatIsShortenedHasNoSlot) {
  const decode_clip decode(
      {.sampling = {.frames = 90, .end = clip_end::shorten}, .width = 8, .height = 8});
  EXPECT_EQ(decode.spec().shape, (dimensions{0, 8, 8, 3}));
  EXPECT_EQ(decode(sample_of("h264.mp4")).shape(), (dimensions{50, 8, 8, 3}));
  EXPECT_THAT([&] { decode(sample_of("h264.mp4"), tensor(element_type::u8, {90, 8, 8, 3})); },
              ThrowsMessage<error>(HasSubstr("have no slot")));
}

TEST(DecodeClip, EndsBetweenTwoFramesWhenItsRunIsStopped) {
  const auto in = sample_of("h264-long-gop.mp4");
  runtime runs({.threads = 1});
  std::atomic<int> calls = 0;
  const decode_clip decode(
      {.sampling = {.frames = 2'000, .position = clip_position::first, .end = clip_end::loop},
       .width = 64,
       .height = 64});
  auto items = runs.run(from(std::vector<int>(100)) | map([&](int) {
                          ++calls;
                          while (!stop_requested()) std::this_thread::yield();
                          try {
                            decode(in);
                            ADD_FAILURE() << "it was not stopped";
                          } catch (const error& failure) {
                            EXPECT_EQ(failure.code(), errc::stopped);
                            throw;
                          }
                          return 0;
                        }));
  auto waiting = std::thread([&] {
    while (calls == 0) std::this_thread::yield();
    items.stop();
  });
  EXPECT_THROW(while (items.wait_next()){}, error);
  waiting.join();
}

// A program's own writer: the planes of the first frame as they are stored.
struct first_planes {
  tensor_spec of;
  tensor_spec spec() const { return of; }
  void operator()(const sample& in, const tensor& slot) const {
    const video opened(in.data(), in.name());
    write_planes(opened.frames(std::vector<std::int64_t>{0})[0], slot);
  }
};

TEST(WritePlanes, FillsTheSlotsOfABatch) {
  const auto first_of = [](const std::string& path) {
    return video(read_bytes(path), path).frames(std::vector<std::int64_t>{0})[0];
  };
  for (const char* format : {"yuv420p", "yuv422p", "yuv444p", "yuv420p10le", "nv12"}) {
    const std::string suffix = std::string(" -frames:v 2 -pix_fmt ") + format;
    std::vector<std::string> paths;
    for (const char* filter : {"null", "hflip", "vflip", "negate"}) {
      paths.push_back(media_directory / (std::string(format) + filter + ".nut"));
      media_files::run("-f lavfi -i testsrc2=size=32x24 -vf " + std::string(filter) + suffix +
                       " -c:v rawvideo " + paths.back());
    }
    runtime runs;
    const first_planes write{planes_spec(first_of(paths[0]))};
    auto batches = from(paths) | map([](const std::string& path) { return sample(path); }) |
                   map(io::read) | batch_into(write, {.size = 2});
    std::size_t next = 0;
    for (auto& batch : runs.run(batches))
      for (std::int64_t i = 0; i < 2; ++i, ++next)
        EXPECT_TRUE(equal(batch.tensor()[i], planes_to_tensor(first_of(paths[next])))) << format;
    EXPECT_EQ(next, 4U);
  }
}

TEST(DecodeClip, BatchesOfAPipelineHaveTheClipsInOrder) {
  std::vector<std::string> paths;
  for (const char* file : {"h264.mp4", "vp9.webm", "mpeg2.ts", "av1.mp4"})
    paths.push_back(video_path(video_recipe(file)));
  const decode_clip decode({.sampling = four_frames, .width = 32, .height = 32});
  runtime runs;
  auto batches = from(paths) | map([](const std::string& path) { return sample(path); }) |
                 map(io::read) | batch_into(decode, {.size = 2});
  std::size_t next = 0;
  for (auto& batch : runs.run(batches))
    for (std::int64_t i = 0; i < 2; ++i, ++next)
      EXPECT_TRUE(
          equal(batch.tensor()[i], decode(sample(paths[next]).with_data(read_bytes(paths[next])))));
  EXPECT_EQ(next, 4U);
}

TEST(DecodeClip, OfAReaderIsThatOfTheFileInMemory) {
  const decode_clip decode({.sampling = {.frames = 4}, .width = 32, .height = 32});
  runtime runs;
  for (const char* file : {"h264.mp4", "vp9.webm"}) {
    const auto path = video_path(video_recipe(file));
    auto from = sync_wait(runs, io::open_reader(path));
    const auto clip = sync_wait(runs, decode.read(std::move(from), random(3)));
    EXPECT_TRUE(equal(clip, decode(sample_of(file), random(3))));
  }
}

TEST(DecodeClip, ErrorsNameTheSample) {
  const decode_clip decode({.width = 8, .height = 8});
  EXPECT_THAT([&] { decode(sample("a/b.mp4")); }, ThrowsMessage<error>(HasSubstr("a/b.mp4")));
  const auto text = sample("c.mp4").with_data(buffer(1000));
  std::fill_n(text.data().data(), 1000, std::byte{'x'});
  EXPECT_THAT([&] { decode(text); }, ThrowsMessage<error>(HasSubstr("c.mp4")));
  EXPECT_THAT([&] { decode(sample_of("h264.mp4"), tensor(element_type::u8, {2, 8, 8, 3})); },
              ThrowsMessage<error>(HasSubstr("instead of contiguous u8[16, 8, 8, 3]")));
}

// The first half of a file.
static sample first_half_of(std::string_view file) {
  const auto whole = sample_of(file);
  return sample(std::string(file)).with_data(whole.data().slice(0, whole.data().size() / 2));
}

TEST(DecodeClip, OfAFileThatIsCutOffHasTheFramesThatAreThereIfThatIsTolerated) {
  for (const char* file : {"hevc-closed.mkv", "vp9.webm", "h264-faststart.mp4"}) {
    const auto half = first_half_of(file);
    clip_options options{
        .sampling = {.frames = 60, .position = clip_position::first}, .width = 16, .height = 16};
    EXPECT_THROW(decode_clip{options}(half), error) << file;
    options.decoding.damage = damage_policy::tolerate;
    const decode_clip tolerant(options);
    const auto clip = tolerant(half);
    EXPECT_GE(tolerant.damaged(), 1U) << file;
    const auto whole = decode_clip{options}(sample_of(file));
    for (std::int64_t t = 0; t < 8; ++t) EXPECT_TRUE(equal(clip[t], whole[t])) << file;
    EXPECT_FALSE(equal(clip[49], whole[49])) << file;  // the last that is there, repeated
  }
}

TEST(DecodeClip, ASlotInTheMemoryOfAGpuIsRefused) {
  const decode_clip decode({.sampling = {.frames = 1}, .width = 8, .height = 8});
  const buffer memory(decode.spec().bytes());
  const tensor slot(decode.spec(),
                    buffer(nullptr, memory.bytes(), {.type = device::kind::cuda, .index = 0}));
  EXPECT_THAT([&] { decode(sample_of("h264.mp4"), slot); },
              ThrowsMessage<error>(HasSubstr("the memory of a GPU")));
}

TEST(DecodeClip, OptionsThatCannotWorkAreNamed) {
  EXPECT_THAT([] { decode_clip(clip_options{}); },
              ThrowsMessage<error>(HasSubstr("width and height")));
  EXPECT_THAT([] { decode_clip({.width = 8, .height = 8, .type = element_type::i32}); },
              ThrowsMessage<error>(HasSubstr("type")));
  const auto refused = [](auto change, const std::string& why) {
    clip_options options{.width = 8, .height = 8};
    change(options);
    EXPECT_THAT([&] { decode_clip{options}; },
                ThrowsMessage<error>(HasSubstr("make decode_clip: " + why)));
  };
  using options = clip_options;
  refused([](options& o) { o.width = -1; }, "width and height must be set");
  refused([](options& o) { o.width = 40'000; }, "width and height must both be set, up to 32768");
  refused([](options& o) { o.shorter_side = -1; }, "shorter_side must be");
  refused([](options& o) { o.min_area = NAN; }, "min_area and max_area must be");
  refused([](options& o) { o.flip = 2; }, "flip must be in [0, 1]");
  refused([](options& o) { o.stddev = {0, 1, 1}; }, "mean and stddev need the type");
  refused([](options& o) { o.sampling.frames = 0; }, "frames must be 1 to 65536");
  refused([](options& o) { o.sampling.position = clip_position{6}; },
          "position is no value of clip_position");
  refused([](options& o) { o.sampling.end = clip_end{4}; }, "end is no value of clip_end");
  refused([](options& o) { o.fit = image_fit{4}; }, "fit is no value of image_fit");
  refused([](options& o) { o.colour = image_colour{4}; }, "colour is no value of image_colour");
  refused([](options& o) { o.layout = clip_layout{3}; }, "layout is no value of clip_layout");
  EXPECT_THAT([] { decode_clip({.width = 8, .height = 8, .decoding = {.decoder = "h265x"}}); },
              ThrowsMessage<error>(HasSubstr("no decoder of the name h265x")));
  EXPECT_THAT([] { decode_clip({.width = 8, .height = 8, .decoding = {.threads = 0}}); },
              ThrowsMessage<error>(HasSubstr("threads")));
}

TEST(DecodeClip, ReservesMemoryForPicturesInFlightAndForPacketsThatAreCopied) {
  const clip_options of{.sampling = {.frames = 2}, .width = 16, .height = 16};
  const auto mp4 = sample("a.mp4").with_data(read_bytes(video_path(video_recipe("h264.mp4"))));
  const auto matroska =
      sample("a.mkv").with_data(read_bytes(video_path(video_recipe("h264-no-first-key.mkv"))));
  constexpr std::size_t pictures = 12 * std::size_t{1280} * 720 * 3 / 2;
  EXPECT_EQ(decode_clip(of).memory_to_write(mp4), pictures);
  EXPECT_EQ(decode_clip(of).memory_to_write(matroska), pictures + matroska.data().size());
  EXPECT_EQ(decode_clip(of).memory_needed(mp4), pictures + std::size_t{2} * 16 * 16 * 3);
  auto small = of;
  small.decoding.max_pixels = 1000;
  EXPECT_EQ(decode_clip(small).memory_to_write(mp4), 12U * 1500);
}

TEST(DecodeClip, IsOfTheStreamThatIsChosen) {
  const auto path = two_videos();
  const auto in = sample(path).with_data(read_bytes(path));
  const clip_options options{.sampling = {.frames = 3, .position = clip_position::first},
                             .stream = 1,
                             .width = 32,
                             .height = 24};
  const auto clip = decode_clip(options)(in);
  const auto frames = video(in.data(), path, {.stream = 1}).frames(numbers{0, 1, 2});
  for (std::size_t t = 0; t < 3; ++t)
    EXPECT_TRUE(equal(clip[static_cast<std::int64_t>(t)],
                      to_tensor(frames[t], {.width = 32, .height = 24})));
  runtime runs;
  EXPECT_TRUE(equal(clip, sync_wait(runs, decode_clip(options).read(
                                              std::make_shared<const memory_reader>(in.data())))));
}

// The pictures of the clip are small enough, and those behind it are not.
TEST(DecodeClip, OfAVideoWithALaterPictureOfTooManyPixelsIsRefused) {
  const auto path = growing_video();
  const auto in = sample(path).with_data(read_bytes(path));
  clip_options options{
      .sampling = {.frames = 2, .position = clip_position::first}, .width = 8, .height = 8};
  EXPECT_NO_THROW(decode_clip{options}(in));
  options.decoding.max_pixels = 64 * 48;
  EXPECT_THROW(decode_clip{options}(in), error);
}

// Each frame of a clip is what to_tensor makes of it with the same options.
template <class SetOptions>
static void expect_frames_of_to_tensor(const std::string& path, const SetOptions& set,
                                       clip_layout layout = clip_layout::thwc) {
  clip_options options{.sampling = four_frames, .width = 30, .height = 20, .layout = layout};
  image_options of_frame{.width = 30, .height = 20};
  set(options);
  set(of_frame);
  of_frame.layout = layout == clip_layout::thwc ? image_layout::hwc : image_layout::chw;
  const auto in = sample(path).with_data(read_bytes(path));
  const auto clip = decode_clip(options)(in, random(3));
  const auto frames = video(in.data(), path).frames(numbers{0, 9, 18, 27});
  for (std::int64_t t = 0; t < 4; ++t) {
    const auto expected = to_tensor(frames[static_cast<std::size_t>(t)], of_frame, random(3));
    if (layout != clip_layout::cthw) {
      EXPECT_TRUE(equal(clip[t], expected));
      continue;
    }
    for (std::int64_t c = 0; c < channels_of(options.colour); ++c)
      EXPECT_TRUE(equal(clip[c][t], expected[c]));
  }
}

TEST(DecodeClip, FramesAreThoseOfToTensorInEachTypeColourAndLayout) {
  const auto path = video_path(video_recipe("h264.mp4"));
  for (const auto type :
       {element_type::u8, element_type::f16, element_type::bf16, element_type::f32})
    for (const auto colour :
         {image_colour::rgb, image_colour::bgr, image_colour::grey, image_colour::rgba})
      for (const auto layout : {clip_layout::thwc, clip_layout::tchw, clip_layout::cthw}) {
        SCOPED_TRACE(std::string(name(type)) + ", colour " + std::to_string(int(colour)) +
                     ", layout " + std::to_string(int(layout)));
        const auto set = [&](auto& of) {
          of.type = type;
          of.colour = colour;
          if (type == element_type::u8) return;
          of.mean = {0.5F, 0.4F, 0.3F};
          of.stddev = {0.2F, 0.3F, 0.4F};
        };
        expect_frames_of_to_tensor(path, set, layout);
      }
}

TEST(DecodeClip, FramesAreCroppedAsToTensorCropsThem) {
  const auto path = video_path(video_recipe("h264.mp4"));
  const auto expect = [&](const char* what, const auto& set) {
    SCOPED_TRACE(what);
    expect_frames_of_to_tensor(path, set);
  };
  expect("centre", [](auto& of) { of.fit = image_fit::centre_crop; });
  expect("shorter_side", [](auto& of) {
    of.fit = image_fit::centre_crop;
    of.shorter_side = 60;
  });
  const auto at_random = [&](const char* what, auto change) {
    expect(what, [change](auto& of) {
      of.fit = image_fit::random_crop;
      change(of);
    });
  };
  at_random("random", [](auto&) {});
  at_random("flip", [](auto& of) { of.flip = 1; });
  at_random("no flip", [](auto& of) { of.flip = 0; });
  at_random("min_area", [](auto& of) { of.min_area = 0.9; });
  at_random("max_area", [](auto& of) { of.max_area = 0.1; });
  at_random("min_aspect", [](auto& of) { of.min_aspect = 1.3; });
  at_random("max_aspect", [](auto& of) { of.max_aspect = 0.8; });
}

TEST(DecodeClip, FramesAreTurnedAsToTensorTurnsThem) {
  const auto path = video_path(video_recipe("h264-rotated.mov"));
  expect_frames_of_to_tensor(path, [](auto& of) { of.orient = true; });
  expect_frames_of_to_tensor(path, [](auto& of) { of.orient = false; });
  const auto in = sample(path).with_data(read_bytes(path));
  clip_options options{.sampling = four_frames, .width = 30, .height = 20};
  const auto turned = decode_clip(options)(in);
  options.orient = false;
  const auto stored = decode_clip(options)(in);
  EXPECT_FALSE(equal(turned, stored));
  EXPECT_TRUE(equal(stored, decode_clip(options)(sample_of("h264.mp4"))));
}

TEST(DecodeClip, FramesOfPixelsThatAreNotSquareAreCroppedAsToTensorCropsThem) {
  const auto path = video_path({"wide.mp4", "-vf setsar=2 -c:v libx264 -pix_fmt yuv420p"});
  for (const bool square : {false, true})
    expect_frames_of_to_tensor(path, [square](auto& of) {
      of.fit = image_fit::centre_crop;
      of.square_pixels = square;
    });
}

}  // namespace lade::media::clip_test
