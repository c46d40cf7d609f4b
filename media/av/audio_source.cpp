#include "audio_source.hpp"

#include "audio_converter.hpp"
#include "audio_range.hpp"
#include "format_reader.hpp"
#include "wav_source.hpp"
#include "window_start.hpp"

#include <lade/error.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/support/little_endian.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace lade::media {

// Decodes the packets of one stream into a sink. `window` and `origin`: see window_cutter.
class audio_decoding {
 public:
  audio_decoding(const stream_info& stream, const time_window& window,
                 std::optional<audio_origin> origin, const audio_options& options, sample_sink& to,
                 const std::stop_token& stop)
      : by_(stream, {.damage = options.damage}),
        converter_(options.sample_rate,
                   requested_channels(options.channels, options.channel_layout, to.doing())),
        cutter_(window, origin),
        counts_(window.begin && !origin),
        to_(to),
        stop_(stop) {}

  // Returns false when the sink or the window is complete.
  bool send(const packet& next) {
    if (stop_.stop_requested()) throw error(errc::stopped, to_.doing());
    by_.send(next);
    receive_all();
    return !to_.is_full() && !cutter_.is_past_end();
  }

  // Returns the number of damaged packets and frames.
  std::uint64_t finish() {
    by_.finish();
    receive_all();
    converter_.finish(to_);
    return by_.damaged();
  }

 private:
  void receive_all() {
    while (auto next = by_.receive()) {
      if (counts_) check_rate(*next);
      cut_.clear();
      cutter_.append(std::move(*next), cut_);
      for (const auto& each : cut_) converter_.convert(each.get(), to_);
    }
  }

  // Counted samples determine the time only if the sample rate is constant.
  void check_rate(const frame& next) {
    const int rate = std::exchange(rate_, next.sample_rate());
    if (rate == 0 || rate == rate_) return;
    throw error(
        errc::unsupported, to_.doing(),
        fmt::format("its sample rate changes from {} to {}, so that it has no windows behind that",
                    rate, rate_));
  }

  decoder by_;
  audio_converter converter_;
  window_cutter cutter_;
  bool counts_;   // whether times are counted from the first sample
  int rate_ = 0;  // of the last frame
  std::vector<frame> cut_;
  sample_sink& to_;
  const std::stop_token& stop_;
};

// An estimate of the number of result samples in a window, from the stated duration. It only saves
// reallocations.
static std::int64_t expected_samples(const stream_info& stream, const time_window& window,
                                     const audio_options& options) {
  constexpr std::int64_t most = std::int64_t{1} << 22;
  const auto total = stream.duration().value_or(rational(1));
  const auto begin = window.begin.value_or(0).to_double();
  const double seconds = window.end ? window.end->to_double() - begin : total.to_double();
  const int rate = options.sample_rate > 0 ? options.sample_rate : stream.sample_rate();
  const double samples = seconds * rate + 4096;
  return static_cast<std::int64_t>(std::clamp(samples, 4096.0, static_cast<double>(most)));
}

std::uint64_t decode_samples(const packets& from, const time_window& window,
                             std::optional<audio_origin> origin, const audio_options& options,
                             sample_sink& to, const std::stop_token& stop) {
  to.expect(expected_samples(from.stream(), window, options));
  audio_decoding decoding(from.stream(), window, origin, options, to, stop);
  for (const auto& each : from)
    if (!decoding.send(each)) break;
  return decoding.finish();
}

std::optional<audio_origin> stated_first_sample(const stream_info& stream) {
  const auto codec = stream.parameters().codec_id;
  const bool may_skip = codec == AV_CODEC_ID_VORBIS || codec == AV_CODEC_ID_OPUS;
  const auto time = may_skip ? std::nullopt : stream.start_time();
  if (!time) return std::nullopt;
  return audio_origin{*time};
}

bool first_sample_finder::send(const packet& next) {
  by_.send(next);
  while (const auto found = by_.receive()) {
    if (!found->time() || found->samples() == 0) continue;
    const rational before(samples_, found->sample_rate());
    samples_ += found->samples();
    const bool is_first = !found_;
    if (is_first) found_ = audio_origin{.boundary = samples_};
    found_->time = *found->time() - before;
    if (!is_first || !has_rounded_times(found->stream())) return true;
  }
  return false;
}

// Finds the first sample of a stream; empty if there is none.
static std::optional<audio_origin> find_first_sample(format_reader& file, const stream_info& stream,
                                                     const audio_options& options) {
  if (const auto stated = stated_first_sample(stream)) return stated;
  file.rewind();
  file.select(std::array{stream.index()});
  first_sample_finder finder(stream, options.damage);
  while (auto next = file.read())
    if (finder.send(packet(std::move(next)))) break;
  return finder.found();
}

// The number of samples at the end of a packet that are not part of the audio.
static std::int64_t discarded_at_end(const AVPacket& packet) noexcept {
  std::size_t size = 0;
  const auto* data = av_packet_get_side_data(&packet, AV_PKT_DATA_SKIP_SAMPLES, &size);
  if (data == nullptr || size < 8) return 0;
  return support::load_little<std::uint32_t>(reinterpret_cast<const std::byte*>(data) + 4);
}

// Counts the samples of a stream by the times of its packets. The result may be smaller by up to
// one packet.
static std::int64_t count_samples(format_reader& file, const stream_info& stream,
                                  const audio_options& options) {
  const auto start = find_first_sample(file, stream, options);
  if (!start) return 0;
  file.rewind();
  file.select(std::array{stream.index()});
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
  std::int64_t discarded = 0;
  while (const auto next = file.read()) {
    std::int64_t behind = 0;
    if (next->pts == AV_NOPTS_VALUE || __builtin_add_overflow(next->pts, next->duration, &behind) ||
        behind < end)
      continue;
    end = behind;
    discarded = discarded_at_end(*next);
  }
  if (end == std::numeric_limits<std::int64_t>::min()) return 0;
  if (has_rounded_times(stream)) --end;
  const auto length = rational(end) * stream.time_base() - start->time;
  return std::max<std::int64_t>(0, (length * stream.sample_rate()).floor() - discarded);
}

bool states_samples(std::string_view format) noexcept {
  return format == "mov,mp4,m4a,3gp,3g2,mj2" || format == "flac";
}

// Whether the file is joined from parts, so that times repeat.
static bool is_of_parts(format_reader& file, const stream_info& stream) {
  const auto& back = file.find_step_back(stream.index());
  return back && file.begins_part(stream.index(), *back);
}

// Counts the samples of a stream by decoding it.
static std::int64_t decode_to_count(format_reader& file, const stream_info& stream,
                                    const audio_options& options) {
  file.rewind();
  file.select(std::array{stream.index()});
  decoder by(stream, {.damage = options.damage});
  std::int64_t samples = 0;
  const auto receive_all = [&] {
    while (const auto next = by.receive()) samples += next->samples();
  };
  while (auto next = file.read()) {
    by.send(packet(std::move(next)));
    receive_all();
  }
  by.finish();
  receive_all();
  return samples;
}

// The number of samples of a stream, if a random window needs it.
static std::optional<std::int64_t> samples_of(format_reader& file, const stream_info& stream,
                                              const audio_options& options) {
  if (!options.random_offset) return std::nullopt;
  const bool stated = states_samples(file.context().iformat->name);
  const auto duration = stream.duration();
  if (stated && duration) return (*duration * stream.sample_rate()).floor();
  if (!forgets(stream.parameters()) || is_of_parts(file, stream))
    return decode_to_count(file, stream, options);
  return count_samples(file, stream, options);
}

static const stream_info& audio_stream_of(format_reader& file, const audio_options& options,
                                          std::string_view doing) {
  if (!options.stream) return require_stream(file, stream_kind::audio);
  const auto& stream = file.stream(*options.stream);
  require_audio(stream, doing);
  return stream;
}

// Whether decoding of a window starts after the first packets. A seek close to them could skip
// some.
static bool begins_late(const stream_info& stream, const time_window& window) {
  return window.begin && *window.begin > stream.time_base() * lead_in_of(stream);
}

// Seeks to the packet at which decoding must start. Returns the first sample of the stream; empty
// if decoding starts with it.
static std::optional<audio_origin> go_to(format_reader& file, const stream_info& stream,
                                         const time_window& window, const audio_options& options) {
  const bool seeks = begins_late(stream, window) && !needs_beginning(stream, file.format()) &&
                     !is_of_parts(file, stream);
  const auto start = seeks ? find_first_sample(file, stream, options) : std::nullopt;
  if (!start) file.rewind();
  file.select(std::array{stream.index()});
  if (!start) return start;
  const auto target = ((start->time + *window.begin) / stream.time_base()).floor();
  file.seek(stream.index(), target - lead_in_of(stream));
  return start;
}

// Decodes packet by packet, so that they are not all in memory at once.
static std::uint64_t decode_media(const buffer& file, std::string_view name,
                                  const audio_options& options, random draw, sample_sink& to,
                                  const std::stop_token& stop) {
  format_reader opened(std::make_unique<memory_input>(file), std::string(name),
                       {.damage = options.damage}, stop);
  const auto& stream = audio_stream_of(opened, options, to.doing());
  const int rate = require_rate(stream, to.doing());
  const auto total = samples_of(opened, stream, options);
  const auto window = window_of(range_of(options, rate, total, draw, to.doing()), rate);
  const auto origin = go_to(opened, stream, window, options);
  to.expect(expected_samples(stream, window, options));
  audio_decoding decoding(stream, window, origin, options, to, stop);
  while (auto next = opened.read())
    if (!decoding.send(packet(std::move(next)))) break;
  const auto damaged = decoding.finish();
  return damaged + opened.damaged();
}

std::uint64_t decode_samples(const buffer& file, std::string_view name,
                             const audio_options& options, random draw, sample_sink& to,
                             const std::stop_token& stop) {
  const auto wav = find_wav(file.bytes(), name, options.damage);
  if (!wav) return decode_media(file, name, options, draw, to, stop);
  return decode_wav(*wav, file.bytes(), options, draw, to, stop);
}

}  // namespace lade::media
