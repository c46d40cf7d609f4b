#include <lade/error.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/media/av/resampler.hpp>

#include "media_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace lade::media::resampler_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

static std::vector<frame> decoded(const std::string& path) {
  return decode(demux(read_bytes(path), path, stream_kind::audio));
}

template <class T>
static std::vector<T> elements_of(const tensor& from) {
  const auto* first = from.data<T>();
  return {first, first + from.spec().elements()};
}

class ResampleFile : public testing::TestWithParam<media_recipe> {};

TEST_P(ResampleFile, EqualsTheFfmpegProgramBitForBit) {
  const auto path = audio_path(GetParam());
  const auto frames = decoded(path);
  const auto mono = resample(frames, {.sample_rate = 16'000, .channels = 1});
  EXPECT_EQ(mono.shape()[0], 1);
  EXPECT_EQ(elements_of<float>(mono), converted_by_ffmpeg<float>(path, "-ar 16000 -ac 1"));
  const auto more =
      resample(frames, {.sample_rate = 48'000, .channels = 6, .layout = audio_layout::interleaved});
  EXPECT_EQ(more.shape()[1], 6);
  EXPECT_EQ(elements_of<float>(more), converted_by_ffmpeg<float>(path, "-ar 48000 -ac 6"));
  const auto words = resample(
      frames,
      {.sample_rate = 8'000, .layout = audio_layout::interleaved, .type = element_type::i16});
  EXPECT_EQ(elements_of<std::int16_t>(words), converted_by_ffmpeg<std::int16_t>(path, "-ar 8000"));
}

TEST_P(ResampleFile, FramesOneByOneEqualAllAtOnce) {
  const auto frames = decoded(audio_path(GetParam()));
  const resample_options options{.sample_rate = 22'050, .channels = 1};
  const auto expected = elements_of<float>(resample(frames, options));
  resampler by(options);
  for (int round = 0; round < 2; ++round) {
    std::vector<float> all;
    const auto append = [&](const tensor& part) {
      const auto samples = elements_of<float>(part);
      all.insert(all.end(), samples.begin(), samples.end());
    };
    for (const auto& each : frames) append(by.convert(each));
    append(by.finish());
    EXPECT_EQ(all, expected) << "round " << round;
  }
  EXPECT_EQ(by.format_changes(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Files, ResampleFile, testing::ValuesIn(audio_recipes()), name_of_recipe);

TEST(Resampler, PlanarAudioIsTheTransposeOfInterleaved) {
  const auto frames = decoded(audio_path(audio_recipes()[0]));
  const auto planar = resample(frames, {.sample_rate = 16'000});
  const auto interleaved =
      resample(frames, {.sample_rate = 16'000, .layout = audio_layout::interleaved});
  ASSERT_EQ(planar.shape()[0], 2);
  ASSERT_EQ(planar.shape()[1], interleaved.shape()[0]);
  const auto samples = planar.shape()[1];
  for (std::int64_t i = 0; i < samples; ++i)
    for (std::int64_t c = 0; c < 2; ++c)
      ASSERT_EQ(planar.data<float>()[c * samples + i], interleaved.data<float>()[2 * i + c]);
}

TEST(Resampler, AChangeOfFormatInMidStreamDeliversAllSamplesAndIsCounted) {
  const auto stereo = decoded(audio_path(audio_recipes()[0]));
  const auto path = audio_path({"mono.wav", "-ac 1 -ar 8000 -c:a pcm_s16le"});
  const auto mono = decoded(path);
  const resample_options options{.sample_rate = 16'000, .channels = 1};
  resampler by(options);
  std::int64_t samples = 0;
  for (const auto& each : stereo) samples += by.convert(each).shape()[1];
  for (const auto& each : mono) samples += by.convert(each).shape()[1];
  samples += by.finish().shape()[1];
  EXPECT_EQ(samples, resample(stereo, options).shape()[1] + resample(mono, options).shape()[1]);
  EXPECT_EQ(by.format_changes(), 1U);
}

TEST(Resampler, OptionsThatCannotWorkAreRefused) {
  EXPECT_THAT([] { resampler({.sample_rate = -1}); },
              ThrowsMessage<error>(HasSubstr("sample_rate")));
  EXPECT_THAT([] { resampler({.channels = 65}); }, ThrowsMessage<error>(HasSubstr("channels")));
  EXPECT_THAT([] { resampler({.channel_layout = "upside"}); },
              ThrowsMessage<error>(HasSubstr("\"upside\"")));
  EXPECT_THAT([] { resampler({.channels = 2, .channel_layout = "5.1"}); },
              ThrowsMessage<error>(HasSubstr("channel_layout has 6")));
  EXPECT_THAT([] { resampler({.type = element_type::f16}); },
              ThrowsMessage<error>(HasSubstr("type")));
}

TEST(Resampler, OptionsOfResampleThatCannotWorkAreRefused) {
  const auto refused = [](const resample_options& options, const std::string& why) {
    EXPECT_THAT([&] { resample({}, options); }, ThrowsMessage<error>(HasSubstr(why)));
  };
  refused({.sample_rate = 768'001}, "sample_rate");
  refused({.channels = -1}, "channels");
  refused({.channel_layout = "upside"}, "\"upside\"");
  refused({.type = element_type::bf16}, "type");
}

TEST(Resampler, EndsBetweenTwoFramesWhenItsRunIsStopped) {
  const auto frames = decoded(audio_path({"stopped.wav", "-c:a pcm_s16le"}));
  EXPECT_EQ(error_in_a_stopped_stage([&] { resample(frames); }), errc::stopped);
}

TEST(Resampler, PicturesAreRefused) {
  const auto path = video_path({"picture.mkv", "-frames:v 1 -c:v ffv1"});
  const auto pictures = decode(demux(read_bytes(path), path, stream_kind::video));
  EXPECT_THAT([&] { resampler().convert(pictures.at(0)); },
              ThrowsMessage<error>(HasSubstr("the frame is a picture")));
  EXPECT_THAT([&] { resample(pictures); }, ThrowsMessage<error>(HasSubstr("is a picture")));
}

TEST(Resampler, RatesThatDifferTooMuchAreRefusedFrameByFrame) {
  const auto path = audio_path({"fast.wav", "-ar 96000 -c:a pcm_s16le"});
  resampler by({.sample_rate = 300});
  EXPECT_THAT([&] { by.convert(decoded(path).at(0)); },
              ThrowsMessage<error>(HasSubstr("factor of 256")));
}

TEST(Resampler, RatesThatDifferTooMuchAreRefused) {
  const auto path = audio_path({"fast.wav", "-ar 96000 -c:a pcm_s16le"});
  EXPECT_THAT([&] { resample(decoded(path), {.sample_rate = 300}); },
              ThrowsMessage<error>(HasSubstr("factor of 256")));
}

}  // namespace lade::media::resampler_test
