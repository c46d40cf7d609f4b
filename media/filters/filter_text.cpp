#include <lade/error.hpp>
#include <lade/media/filters/filter_text.hpp>

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

namespace lade::media {

static void require_filter(bool condition, std::string_view filter, std::string_view reason) {
  if (!condition)
    throw error(errc::invalid_argument, "make the filter " + std::string(filter), reason);
}

// A word of an option. Throws for characters that could start another option or filter.
static std::string filter_word(std::string_view word, std::string_view filter) {
  const auto allowed = [](char each) {
    return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
           (each >= '0' && each <= '9') || each == '_' || each == '.' || each == '+';
  };
  require_filter(!word.empty() && std::all_of(word.begin(), word.end(), allowed), filter,
                 fmt::format("it takes a name of FFmpeg, not \"{}\"", word));
  return std::string(word);
}

static std::string filter_size(int width, int height, std::string_view filter) {
  constexpr int most = 1 << 15;
  require_filter(width >= 1 && width <= most && height >= 1 && height <= most, filter,
                 "width and height must be 1 to 32768");
  return fmt::format("{}:{}", width, height);
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
  constexpr std::int64_t most = 1'000'000;
  constexpr std::int64_t largest_term = std::numeric_limits<std::int32_t>::max();
  require_filter(frames_per_second >= rational(1, most) && frames_per_second <= most &&
                     frames_per_second.numerator() <= largest_term &&
                     frames_per_second.denominator() <= largest_term,
                 "fps", "frames per second must be 1/1000000 to 1000000 and have terms of 31 bits");
  return "fps=" + to_string(frames_per_second);
}

// A duration option, which has a resolution of microseconds. The time is rounded up.
static std::string microseconds_text(const rational& time, std::string_view filter) {
  constexpr std::int64_t most = 1'000'000'000'000;
  require_filter(time >= -most && time <= most, filter, "times must be within 10^12 seconds of 0");
  return fmt::format("{}us", ceil_units(time, rational(1, 1'000'000)));
}

static std::string trim_text(const time_window& window, std::string_view filter) {
  require_filter(!window.begin || !window.end || *window.begin <= *window.end, filter,
                 "the window ends before it begins");
  std::string text(filter);
  char separator = '=';
  if (window.begin) text += separator + ("start=" + microseconds_text(*window.begin, filter));
  if (window.begin) separator = ':';
  if (window.end) text += separator + ("end=" + microseconds_text(*window.end, filter));
  return text;
}

std::string trim_filter(const time_window& window) {
  return trim_text(window, "trim") + ",setpts=PTS-STARTPTS";
}
std::string audio_trim_filter(const time_window& window) {
  return trim_text(window, "atrim") + ",asetpts=PTS-STARTPTS";
}

// A crop of exactly this size. Without `exact`, FFmpeg rounds it to whole chroma samples. `x` and
// `y` must be multiples of the chroma subsampling.
static std::string exact_crop(std::string_view size, std::string_view x, std::string_view y) {
  return fmt::format("crop={}:{}:{}:exact=1", size, x, y);
}

// FFmpeg rounds the size of a padded picture down to whole chroma samples, each of up to 4 x 4
// pixels. So the picture is padded to a multiple of four, and then cropped.
static std::string exact_pad(int width, int height, std::string_view padding) {
  const auto size = filter_size(width, height, "pad");
  return fmt::format("pad={},{}", padding, exact_crop(size, "0", "0"));
}

static int padded_length(int length) noexcept { return (length + 3) / 4 * 4; }

// Expressions of the filter `scale` for fitting a picture into another size. The result is whole
// chroma samples: `pad` accepts no other size.
static std::string fitted_size(const std::string& width, const std::string& height) {
  const auto factor = fmt::format("min({}/iw\\,{}/ih)", width, height);
  const auto length = [&](const std::string& name, const std::string& chroma) {
    return fmt::format("ceil(max(1\\,round({}*{}))/{})*{}", name, factor, chroma, chroma);
  };
  return length("iw", "hsub") + ":" + length("ih", "vsub");
}

std::string scale_filter(const scale_options& options) {
  constexpr std::array algorithms{"bilinear", "bicubic", "area", "lanczos", "neighbor"};
  const auto algorithm = static_cast<std::size_t>(options.algorithm);
  require_filter(algorithm < algorithms.size(), "scale",
                 "algorithm is no value of scale_algorithm");
  const auto size = filter_size(options.width, options.height, "scale");
  const auto flags = fmt::format(":flags={}+accurate_rnd", algorithms[algorithm]);
  const auto width = std::to_string(options.width);
  const auto height = std::to_string(options.height);
  switch (options.fit) {
    case scale_fit::stretch: return fmt::format("scale={}{}", size, flags);
    case scale_fit::pad:
      return fmt::format("scale={}{},{},setsar=1", fitted_size(width, height), flags,
                         exact_pad(options.width, options.height,
                                   fmt::format("{}:{}:max(0\\,({}-iw)/2):max(0\\,({}-ih)/2)",
                                               padded_length(options.width),
                                               padded_length(options.height), width, height)));
    case scale_fit::crop:
      return fmt::format(
          "scale={}{}:force_original_aspect_ratio=increase,{},setsar=1", size, flags,
          exact_crop(size, "trunc((iw-ow)/2/hsub)*hsub", "trunc((ih-oh)/2/vsub)*vsub"));
  }
  require_filter(false, "scale", "fit is no value of scale_fit");
  return {};
}

// An expression: whether a length is a multiple of whole chroma samples. All arguments are
// expressions. `chroma`: "hsub" or "vsub", the columns or rows of one chroma sample.
static std::string is_multiple(const std::string& length, const std::string& chroma) {
  return fmt::format("not(mod({}\\,{}))", length, chroma);
}

// A length that FFmpeg refuses unless [at, at + length) is inside of `whole` and a condition holds.
// FFmpeg itself would move or cut the part.
struct placed_length {
  std::string at;
  std::string length;
  std::string whole;
  std::string condition;

  std::string checked(int result) const {
    const auto is_inside = fmt::format("lte({}+{}\\,{})", at, length, whole);
    return fmt::format("if({}*{}\\,{}\\,-1)", is_inside, condition, result);
  }
};

static void check_area(const picture_area& area, std::string_view filter) {
  require_filter(area.x >= 0 && area.y >= 0, filter, "x and y must not be below 0");
  (void)filter_size(area.width, area.height, filter);
}

std::string crop_filter(const picture_area& part) {
  check_area(part, "crop");
  const auto x = std::to_string(part.x);
  const auto y = std::to_string(part.y);
  const auto width = std::to_string(part.width);
  const auto height = std::to_string(part.height);
  const placed_length across{
      .at = x, .length = width, .whole = "iw", .condition = is_multiple(x, "hsub")};
  const placed_length down{
      .at = y, .length = height, .whole = "ih", .condition = is_multiple(y, "vsub")};
  return exact_crop(across.checked(part.width) + ":" + down.checked(part.height), x, y);
}

std::string pad_filter(const picture_area& placed) {
  check_area(placed, "pad");
  const auto x = std::to_string(placed.x);
  const auto y = std::to_string(placed.y);
  const placed_length across{.at = x,
                             .length = "iw",
                             .whole = std::to_string(placed.width),
                             .condition = is_multiple(x, "hsub") + "*" + is_multiple("iw", "hsub")};
  const placed_length down{.at = y,
                           .length = "ih",
                           .whole = std::to_string(placed.height),
                           .condition = is_multiple(y, "vsub") + "*" + is_multiple("ih", "vsub")};
  return exact_pad(placed.width, placed.height,
                   fmt::format("{}:{}:{}:{}", across.checked(padded_length(placed.width)),
                               down.checked(padded_length(placed.height)), x, y));
}

std::string pixel_format_filter(std::string_view format) {
  return "format=" + filter_word(format, "format");
}

std::string frame_count_filter(std::int64_t frames) {
  require_filter(frames > 0, "trim", "the number of frames must be above 0");
  return fmt::format("trim=end_frame={}", frames);
}

std::string sample_rate_filter(int samples_per_second) {
  require_filter(samples_per_second > 0, "aresample", "the sample rate must be above 0");
  return fmt::format("aresample={}", samples_per_second);
}

std::string channel_layout_filter(std::string_view layout) {
  return "aformat=channel_layouts=" + filter_word(layout, "aformat");
}

std::string sample_format_filter(std::string_view format) {
  return "aformat=sample_fmts=" + filter_word(format, "aformat");
}

std::string sample_count_filter(std::int64_t samples) {
  require_filter(samples > 0, "atrim", "the number of samples must be above 0");
  return fmt::format("atrim=end_sample={}", samples);
}

}  // namespace lade::media
