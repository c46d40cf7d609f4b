#include <lade/error.hpp>
#include <lade/media/filters/filter_text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lade::media {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(FilterText, FiltersAreJoinedByCommas) {
  EXPECT_EQ(filter_chain({"hflip", "", rate_filter(rational(30'000, 1001))}),
            "hflip,fps=30000/1001");
  EXPECT_EQ(filter_chain({}), "");
}

TEST(FilterText, WindowsAreInMicroseconds) {
  EXPECT_EQ(trim_filter({.begin = rational(1, 2), .end = rational(3)}),
            "trim=start=500000us:end=3000000us,setpts=PTS-STARTPTS");
  EXPECT_EQ(audio_trim_filter({.end = rational(1)}), "atrim=end=1000000us,asetpts=PTS-STARTPTS");
}

TEST(FilterText, ValuesThatCannotWorkAreRefused) {
  const auto refused = [](auto make, const char* why) {
    EXPECT_THAT([&] { make(); }, ThrowsMessage<error>(HasSubstr(why)));
  };
  refused([] { rate_filter(0); }, "above 0");
  refused([] { scale_filter({.width = 0, .height = 8}); }, "1 to 32768");
  refused([] { crop_filter({.x = -1, .y = 0, .width = 8, .height = 8}); }, "below 0");
  refused([] { pixel_format_filter("rgb24,movie=a.mp4"); }, "a name of FFmpeg");
  refused([] { channel_layout_filter(""); }, "a name of FFmpeg");
  refused([] { frame_count_filter(0); }, "above 0");
  refused([] { sample_count_filter(-1); }, "above 0");
  refused([] { sample_rate_filter(0); }, "above 0");
}

}  // namespace lade::media
