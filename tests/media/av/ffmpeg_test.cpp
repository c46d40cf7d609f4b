#include <lade/error.hpp>
#include <lade/media/av.hpp>
#include <lade/media/av/audio.hpp>
#include <lade/media/av/clip.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/media/av/ffmpeg.hpp>
#include <lade/media/av/video.hpp>
#include <lade/sample.hpp>

#include "media_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

extern "C" {
#include <libavutil/error.h>
}

namespace lade::media::ffmpeg_test {

using testing::Contains;
using testing::HasSubstr;

TEST(Ffmpeg, ListsItsComponents) {
  EXPECT_FALSE(ffmpeg_version().empty());
  EXPECT_THAT(ffmpeg_decoders(), Contains("h264"));
  EXPECT_THAT(ffmpeg_encoders(), Contains("ffv1"));
  EXPECT_THAT(ffmpeg_demuxers(), Contains("matroska,webm"));
  EXPECT_THAT(ffmpeg_muxers(), Contains("mp4"));
  EXPECT_THAT(ffmpeg_bitstream_filters(), Contains("h264_mp4toannexb"));
  EXPECT_TRUE(has_ffmpeg_decoder("flac"));
  EXPECT_FALSE(has_ffmpeg_encoder("no such encoder"));
}

// An MP4 file without its index.
static buffer headless() {
  const auto file = read_bytes(video_path(video_recipes()[0]));
  buffer cut(file.size());
  std::memcpy(cut.data(), file.data(), file.size());
  const auto at = file.text().find("moov");
  std::memcpy(cut.data() + at, "junk", 4);
  return cut;
}

TEST(Ffmpeg, ItsWordsArePartOfTheErrorAndNothingIsPrinted) {
  testing::internal::CaptureStderr();
  EXPECT_THAT([] { demuxer(headless(), "headless.mp4"); },
              testing::ThrowsMessage<error>(
                  testing::AllOf(HasSubstr("headless.mp4"), HasSubstr("(moov atom not found)"))));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// The error of a call, which must throw one.
template <class Call>
static error error_of(Call call) {
  try {
    call();
  } catch (const error& thrown) {
    return thrown;
  }
  return {errc::failed, "call", "nothing was thrown"};
}

TEST(Ffmpeg, FilesOfNoFormatAreInvalidDataWithItsMessage) {
  const std::string_view words = "Not a video, but some text of a few lines.\n";
  buffer text(words.size());
  std::memcpy(text.data(), words.data(), words.size());
  for (const auto& file : {text, headless()}) {
    const auto in = sample("a.mp4").with_data(file);
    for (const auto& thrown :
         {error_of([&] { demuxer(file, "a.mp4"); }), error_of([&] { video(file, "a.mp4"); }),
          error_of([&] { (void)decode_audio()(in); }),
          error_of([&] { (void)decode_clip({.width = 16, .height = 16})(in); })}) {
      EXPECT_EQ(thrown.code(), errc::invalid_data) << thrown.what();
      EXPECT_THAT(thrown.what(),
                  testing::AllOf(HasSubstr("a.mp4: "), HasSubstr("Invalid data found")));
    }
  }
}

TEST(Ffmpeg, ItsCodesAreThoseOfLadeOrConditionsOfTheSystem) {
  const auto code_of = [](int result) {
    return error_of([&] { check_av(result, "test"); }).code();
  };
  EXPECT_EQ(code_of(AVERROR_INVALIDDATA), errc::invalid_data);
  EXPECT_EQ(code_of(AVERROR_PATCHWELCOME), errc::unsupported);
  EXPECT_EQ(code_of(AVERROR_EXIT), errc::stopped);
  EXPECT_EQ(code_of(AVERROR(ENOSPC)), std::errc::no_space_on_device);
  EXPECT_EQ(code_of(AVERROR(ENOMEM)), std::errc::not_enough_memory);
  EXPECT_EQ(code_of(AVERROR_BUG), std::error_code(AVERROR_BUG, av_category()));
  EXPECT_EQ(code_of(AVERROR_BUG).default_error_condition().category(), av_category());
}

TEST(Ffmpeg, ItsMessagesArePrintedIfAsked) {
  EXPECT_EQ(get_ffmpeg_log(), ffmpeg_log::quiet);
  set_ffmpeg_log(ffmpeg_log::errors);
  testing::internal::CaptureStderr();
  EXPECT_THROW(demuxer(headless(), "headless.mp4"), error);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("moov atom not found"));
  set_ffmpeg_log(ffmpeg_log::quiet);
}

}  // namespace lade::media::ffmpeg_test
