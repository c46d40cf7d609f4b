#include <lade/error.hpp>
#include <lade/media/filters/filter_text.hpp>

#include <algorithm>
#include <array>

namespace lade::media {

static void require_filter(bool condition, std::string_view filter, std::string_view why) {
  if (!condition)
    throw error(errc::invalid_argument, "make the filter " + std::string(filter), why);
}

// A value that no other filter can follow.
static std::string filter_word(std::string_view word, std::string_view filter) {
  const auto allowed = [](char each) {
    return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
           (each >= '0' && each <= '9') || each == '_' || each == '.' || each == '+';
  };
  require_filter(!word.empty() && std::all_of(word.begin(), word.end(), allowed), filter,
                 "it takes a name of FFmpeg, not \"" + std::string(word) + "\"");
  return std::string(word);
}

static std::string filter_size(int width, int height, std::string_view filter) {
  constexpr int most = 1 << 15;
  require_filter(width >= 1 && width <= most && height >= 1 && height <= most, filter,
                 "width and height must be 1 to 32768");
  return std::to_string(width) + ":" + std::to_string(height);
}

std::string filter_chain(std::initializer_list<std::string_view> filters) {
  std::string chain;
  for (const auto each : filters) {
    if (!chain.empty() && !each.empty()) chain += ',';
    chain += each;
  }
  return chain;
}

std::string rate_filter(const rational& frames_per_second) {
  require_filter(frames_per_second > 0, "fps", "frames per second must be above 0");
  return "fps=" + to_string(frames_per_second);
}

// FFmpeg takes microseconds here.
static std::string trim_text(const time_window& window, std::string_view filter) {
  const auto microseconds = [](const rational& time) {
    return std::to_string((time * 1'000'000).ceil()) + "us";
  };
  std::string text(filter);
  char separator = '=';
  if (window.begin) text += separator + ("start=" + microseconds(*window.begin));
  if (window.begin) separator = ':';
  if (window.end) text += separator + ("end=" + microseconds(*window.end));
  return text;
}

std::string trim_filter(const time_window& window) {
  return trim_text(window, "trim") + ",setpts=PTS-STARTPTS";
}
std::string audio_trim_filter(const time_window& window) {
  return trim_text(window, "atrim") + ",asetpts=PTS-STARTPTS";
}

std::string scale_filter(const scale_options& options) {
  constexpr std::array algorithms{"bilinear", "bicubic", "area", "lanczos", "neighbor"};
  const auto size = filter_size(options.width, options.height, "scale");
  const auto scale = "scale=" + size +
                     ":flags=" + algorithms[static_cast<std::size_t>(options.algorithm)] +
                     "+accurate_rnd";
  switch (options.fit) {
    case scale_fit::stretch: break;
    case scale_fit::pad:
      return scale + ":force_original_aspect_ratio=decrease,pad=" + size +
             ":(ow-iw)/2:(oh-ih)/2,setsar=1";
    case scale_fit::crop:
      return scale + ":force_original_aspect_ratio=increase,crop=" + size + ",setsar=1";
  }
  return scale;
}

static std::string area_text(const picture_area& area, std::string_view filter) {
  require_filter(area.x >= 0 && area.y >= 0, filter, "x and y must not be below 0");
  return std::string(filter) + "=" + filter_size(area.width, area.height, filter) + ":" +
         std::to_string(area.x) + ":" + std::to_string(area.y);
}

std::string crop_filter(const picture_area& part) { return area_text(part, "crop"); }
std::string pad_filter(const picture_area& placed) { return area_text(placed, "pad"); }

std::string pixel_format_filter(std::string_view format) {
  return "format=" + filter_word(format, "format");
}

std::string frame_count_filter(std::int64_t frames) {
  require_filter(frames > 0, "trim", "the number of frames must be above 0");
  return "trim=end_frame=" + std::to_string(frames);
}

std::string sample_rate_filter(int samples_per_second) {
  require_filter(samples_per_second > 0, "aresample", "the sample rate must be above 0");
  return "aresample=" + std::to_string(samples_per_second);
}

std::string channel_layout_filter(std::string_view layout) {
  return "aformat=channel_layouts=" + filter_word(layout, "aformat");
}

std::string sample_format_filter(std::string_view format) {
  return "aformat=sample_fmts=" + filter_word(format, "aformat");
}

std::string sample_count_filter(std::int64_t samples) {
  require_filter(samples > 0, "atrim", "the number of samples must be above 0");
  return "atrim=end_sample=" + std::to_string(samples);
}

}  // namespace lade::media
