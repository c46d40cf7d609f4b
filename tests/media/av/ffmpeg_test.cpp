#include <lade/error.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/media/av/ffmpeg.hpp>

#include "media_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace lade::media {

using testing::Contains;
using testing::HasSubstr;

TEST(Ffmpeg, TellsWhatItHas) {
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

TEST(Ffmpeg, ItsMessagesArePrintedIfAsked) {
  EXPECT_EQ(get_ffmpeg_log(), ffmpeg_log::quiet);
  set_ffmpeg_log(ffmpeg_log::errors);
  testing::internal::CaptureStderr();
  EXPECT_THROW(demuxer(headless(), "headless.mp4"), error);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("moov atom not found"));
  set_ffmpeg_log(ffmpeg_log::quiet);
}

}  // namespace lade::media
