// Functions that return the text of common filters, for filter_graph, without knowledge of FFmpeg's
// names. All throw error(invalid_argument) for invalid values.
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

// Returns filters as a chain; empty texts are skipped.
std::string filter_chain(std::initializer_list<std::string_view> filters);

// Video.

// A constant frame rate in frames per second, 1/1,000,000 to 1,000,000, by repeating and dropping
// frames. Numerator and denominator have at most 31 bits.
std::string rate_filter(const rational& frames_per_second);

// The frames or samples in the window, with times from 0 on. The window must not end before it
// begins. It is rounded up to microseconds and lies within 10^12 seconds of 0.
std::string trim_filter(const time_window& window);
std::string audio_trim_filter(const time_window& window);

enum class scale_algorithm : std::uint8_t { bilinear, bicubic, area, lanczos, nearest };

// How a picture is fitted to a size.
enum class scale_fit : std::uint8_t {
  stretch,  // the whole picture; proportions change
  pad,      // the whole picture, centred on black; its size is rounded up to whole chroma samples
  crop,     // the centre of the picture
};

struct scale_options {
  int width = 0;  // in pixels
  int height = 0;
  scale_algorithm algorithm = scale_algorithm::bicubic;
  scale_fit fit = scale_fit::stretch;
};
// The result has exactly this size in every pixel format.
std::string scale_filter(const scale_options& options);

// The part of the picture that is kept, or the position of the picture on black; in pixels. The
// result has exactly this size in every pixel format. The graph fails with
// std::errc::invalid_argument, instead of moving the part or the picture, if
// - the part exceeds the picture, or the picture exceeds the result,
// - `x` or `y` lies between two chroma samples: for 4:2:0 both must be even, for 4:2:2 `x`,
// - a padded picture ends between two chroma samples. Only formats without such chroma can then
//   be padded.
struct picture_area {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};
std::string crop_filter(const picture_area& part);
std::string pad_filter(const picture_area& placed);  // size of the result, position of the picture

std::string pixel_format_filter(std::string_view format);  // FFmpeg's name: "rgb24"
std::string frame_count_filter(std::int64_t frames);       // keeps the first frames

// Audio.
std::string sample_rate_filter(int samples_per_second);
std::string channel_layout_filter(std::string_view layout);  // FFmpeg's name: "mono", "5.1"
std::string sample_format_filter(std::string_view format);   // FFmpeg's name: "flt", "s16p"
std::string sample_count_filter(std::int64_t samples);       // keeps the first samples

}  // namespace lade::media
