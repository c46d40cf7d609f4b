// The text of usual filters, for filter_graph and for readers who do not know FFmpeg's names by
// heart. All throw error(invalid_argument) for values that cannot work.
//
//   filter_graph graph(filter_chain({rate_filter(25), scale_filter({.width = 224, .height = 224}),
//                                    pixel_format_filter("rgb24")}));

#pragma once

#include <lade/media/av/rational.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace lade::media {

// Filters one after the other; empty texts are left out.
std::string filter_chain(std::initializer_list<std::string_view> filters);

// Video.

// A constant number of frames per second, 1/1,000,000 to 1,000,000, by repeating and dropping
// frames. Numerator and denominator have 31 bits.
std::string rate_filter(const rational& frames_per_second);

// Frames and samples in the window, with times from 0 on. It does not end before it begins. The
// window has microseconds, and lies within 10^12 seconds of 0.
std::string trim_filter(const time_window& window);
std::string audio_trim_filter(const time_window& window);

enum class scale_algorithm : std::uint8_t { bilinear, bicubic, area, lanczos, nearest };

// How a picture is fitted to a size.
enum class scale_fit : std::uint8_t {
  stretch,  // whatever its proportions
  pad,      // all of it, in the middle, on black; its size is rounded up to whole samples of chroma
  crop,     // its middle
};

struct scale_options {
  int width = 0;  // in pixels
  int height = 0;
  scale_algorithm algorithm = scale_algorithm::bicubic;
  scale_fit fit = scale_fit::stretch;
};
// Pictures of all pixel formats have exactly this size.
std::string scale_filter(const scale_options& options);

// A part of the picture, and a picture with black around it; in pixels. Pictures of all pixel
// formats have exactly this size. The graph fails with std::errc::invalid_argument, rather than
// move the part or the picture, if
// - the part is not inside of the picture, or the picture not inside of the result
// - `x` or `y` lies between two samples of chroma: of 4:2:0 both are even, of 4:2:2 `x` is
// - a picture that is padded ends between two: then only formats without such chroma can be padded
struct picture_area {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};
std::string crop_filter(const picture_area& part);
std::string pad_filter(const picture_area& placed);  // size of the result, and where the picture is

std::string pixel_format_filter(std::string_view format);  // FFmpeg's name: "rgb24"
std::string frame_count_filter(std::int64_t frames);       // only the first frames

// Audio.
std::string sample_rate_filter(int samples_per_second);
std::string channel_layout_filter(std::string_view layout);  // FFmpeg's name: "mono", "5.1"
std::string sample_format_filter(std::string_view format);   // FFmpeg's name: "flt", "s16p"
std::string sample_count_filter(std::int64_t samples);       // only the first samples

}  // namespace lade::media
