#include <lade/error.hpp>
#include <lade/media/filters/filter_text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

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
  refused([] { rate_filter(0); }, "1/1000000 to 1000000");
  refused([] { scale_filter({.width = 0, .height = 8}); }, "1 to 32768");
  refused([] { crop_filter({.x = -1, .y = 0, .width = 8, .height = 8}); }, "below 0");
  refused([] { trim_filter({.begin = 3, .end = 1}); }, "ends before it begins");
  refused([] { audio_trim_filter({.begin = 3, .end = 1}); }, "ends before it begins");
  refused([] { pixel_format_filter("rgb24,movie=a.mp4"); }, "a name of FFmpeg");
  refused([] { channel_layout_filter(""); }, "a name of FFmpeg");
  refused([] { frame_count_filter(0); }, "above 0");
  refused([] { sample_count_filter(-1); }, "above 0");
  refused([] { sample_rate_filter(0); }, "above 0");
  refused([] { scale_filter({.width = 8, .height = 8, .fit = scale_fit{3}}); },
          "fit is none of scale_fit");
  refused([] { scale_filter({.width = 8, .height = 8, .algorithm = scale_algorithm{5}}); },
          "algorithm is none of scale_algorithm");
}

TEST(FilterText, RatesThatFfmpegCannotHoldAreRefused) {
  constexpr auto largest = std::numeric_limits<std::int64_t>::max();
  for (const auto& rate : {rational(largest), rational(1, largest), rational(1'000'001),
                           rational(1, 1'000'001), rational(2'147'483'648, 2'147'483'647)})
    EXPECT_THAT([&] { rate_filter(rate); },
                ThrowsMessage<error>(HasSubstr("make the filter fps: frames per second must be "
                                               "1/1000000 to 1000000 and have terms of 31 bits")))
        << to_string(rate);
  EXPECT_EQ(rate_filter(rational(1, 1'000'000)), "fps=1/1000000");
  EXPECT_EQ(rate_filter(rational(2'147'483'647, 100'000'000)), "fps=2147483647/100000000");
}

TEST(FilterText, TimesThatFfmpegCannotHoldAreRefused) {
  constexpr auto largest = std::numeric_limits<std::int64_t>::max();
  constexpr auto lowest = std::numeric_limits<std::int64_t>::min();
  for (const auto& time : {rational(largest), rational(lowest), rational(1'000'000'000'001)})
    for (const auto& window : {time_window{.begin = time}, time_window{.end = time}})
      for (const auto make : {trim_filter, audio_trim_filter}) try {
          (void)make(window);
          ADD_FAILURE() << to_string(time);
        } catch (const error& refused) {
          EXPECT_EQ(refused.code(), errc::invalid_argument);
          EXPECT_THAT(refused.what(), HasSubstr("trim: times must be within 10^12 seconds of 0"));
        }
  EXPECT_EQ(trim_filter({.end = rational(1'000'000'000'000)}),
            "trim=end=1000000000000000000us,setpts=PTS-STARTPTS");
}

}  // namespace lade::media
