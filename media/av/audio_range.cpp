#include "audio_range.hpp"

#include <lade/error.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

namespace lade::media {

bool crops(const audio_options& options) noexcept {
  return options.samples > 0 &&
         (options.fit == audio_fit::pad_or_crop || options.fit == audio_fit::crop);
}

// The number of file samples that become options.samples result samples.
static std::int64_t samples_before(const audio_options& options, int rate) {
  const int output_rate = options.sample_rate > 0 ? options.sample_rate : rate;
  return (rational(options.samples) * rate / output_rate).ceil();
}

// More than the look-ahead of libswresample: half of 32 samples at the lower rate.
static std::int64_t look_ahead(const audio_options& options, int rate) {
  const int output_rate = options.sample_rate > 0 ? options.sample_rate : rate;
  return output_rate == rate ? 0 : 64 + (rational(64) * rate / output_rate).ceil();
}

static std::int64_t random_begin(const audio_options& options, int rate, std::int64_t first,
                                 std::optional<std::int64_t> total, random draw,
                                 std::string_view doing) {
  if (!total)
    throw error(errc::unsupported, doing,
                "a random window needs its duration, which it does not state");
  const auto length = std::isfinite(options.duration)
                          ? (rational::nearest(options.duration) * rate).ceil()
                          : samples_before(options, rate);
  const auto spare = *total - first - length;
  if (spare <= 0) return first;
  return first + static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(spare) + 1));
}

sample_range range_of(const audio_options& options, int rate, std::optional<std::int64_t> total,
                      random draw, std::string_view doing) {
  const auto offset = rational::nearest(options.offset);
  sample_range range{.first = (offset * rate).ceil()};
  if (std::isfinite(options.duration))
    range.end = ((offset + rational::nearest(options.duration)) * rate).ceil();
  if (options.random_offset) {
    const auto first = random_begin(options, rate, range.first, total, draw, doing);
    if (range.end) *range.end += first - range.first;
    range.first = first;
  }
  if (crops(options)) {
    const auto enough = range.first + samples_before(options, rate) + look_ahead(options, rate);
    range.end = std::min(range.end.value_or(enough), enough);
  }
  return range;
}

int require_rate(const stream_info& stream, std::string_view doing) {
  if (stream.sample_rate() > 0) return stream.sample_rate();
  throw error(errc::unsupported, doing, "it does not state its sample rate");
}

time_window window_of(const sample_range& range, int rate) {
  time_window window;
  if (range.first > 0) window.begin = rational(range.first, rate);
  if (range.end) window.end = rational(*range.end, rate);
  return window;
}

time_window audio_window_of(const audio_options& options, const stream_info& stream, random draw,
                            std::string_view doing) {
  const int rate = require_rate(stream, doing);
  std::optional<std::int64_t> total;
  if (const auto duration = stream.duration()) total = (*duration * rate).floor();
  return window_of(range_of(options, rate, total, draw, doing), rate);
}

void require_audio(const stream_info& stream, std::string_view doing) {
  if (stream.kind() == stream_kind::audio) return;
  throw error(errc::invalid_argument, doing,
              fmt::format("its stream {} is {}, not audio", stream.index(), name(stream.kind())));
}

}  // namespace lade::media
