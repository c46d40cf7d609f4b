#include "audio_source.hpp"

#include "audio_converter.hpp"
#include "format_reader.hpp"
#include "window_start.hpp"

#include <lade/detail/load_little.hpp>
#include <lade/error.hpp>
#include <lade/media/av/decoder.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lade::media {

bool crops(const audio_options& options) noexcept {
  return options.samples > 0 &&
         (options.fit == audio_fit::pad_or_crop || options.fit == audio_fit::crop);
}

// How many samples of a file become so many of the result.
static std::int64_t samples_before(const audio_options& options, int rate) {
  const int wanted = options.sample_rate > 0 ? options.sample_rate : rate;
  return (rational(options.samples) * rate / wanted).ceil();
}

// More than libswresample looks ahead: half of 32 samples of the lower rate.
static std::int64_t look_ahead(const audio_options& options, int rate) {
  const int wanted = options.sample_rate > 0 ? options.sample_rate : rate;
  return wanted == rate ? 0 : 64 + (rational(64) * rate / wanted).ceil();
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

static int require_rate(const stream_info& stream, std::string_view doing) {
  if (stream.sample_rate() > 0) return stream.sample_rate();
  throw error(errc::unsupported, doing, "it does not state its sample rate");
}

static time_window window_of(const sample_range& range, int rate) {
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
              "its stream " + std::to_string(stream.index()) + " is " +
                  std::string(name(stream.kind())) + ", not audio");
}

static bool begins_as_wav(std::span<const std::byte> file) noexcept {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const bool riff =
      text.starts_with("RIFF") || text.starts_with("RF64") || text.starts_with("BW64");
  return riff && text.size() >= 12 && text.substr(8, 4) == "WAVE";
}

// The header of a file that ends before its data do; empty if it ends before its header does.
static std::optional<io::wav_info> find_cut_wav(std::span<const std::byte> file,
                                                std::string_view name) {
  io::wav_header header(std::numeric_limits<std::int64_t>::max(), name);
  while (header.wants() && header.offset() < file.size()) {
    const auto rest = file.subspan(static_cast<std::size_t>(header.offset()));
    std::array<std::byte, io::wav_header::part_bytes> padded{};
    std::copy_n(rest.begin(), std::min(rest.size(), padded.size()), padded.begin());
    header.take(rest.size() < padded.size() ? padded : rest);
  }
  if (header.wants()) return std::nullopt;
  auto info = header.info();
  info.data_offset = std::min<std::uint64_t>(info.data_offset, file.size());
  const auto there = file.size() - info.data_offset;
  info.frames = std::min<std::uint64_t>(info.frames, there / io::wav_frame_bytes(info));
  return info;
}

std::optional<wav_file> find_wav(std::span<const std::byte> file, std::string_view name,
                                 damage_policy damage) {
  if (!begins_as_wav(file)) return std::nullopt;
  io::wav_header header(file.size(), name);
  try {
    while (header.wants()) header.take(file.subspan(header.offset()));
  } catch (const error& refused) {
    if (refused.code() == errc::unsupported) return std::nullopt;  // FFmpeg knows more encodings
    const auto cut = damage == damage_policy::tolerate ? find_cut_wav(file, name) : std::nullopt;
    if (!cut) throw;
    return wav_file{.info = *cut, .is_cut = true};
  }
  return wav_file{.info = header.info()};
}

// Part of a WAV file.
struct wav_part {
  io::wav_info info;
  std::span<const std::byte> bytes;  // of the samples
  std::int64_t samples = 0;          // of each channel
};

static wav_part wav_part_of(const io::wav_info& info, std::span<const std::byte> file,
                            const audio_options& options, random draw, std::string_view doing) {
  if (info.sample_rate > std::uint32_t{1} << 30)
    throw error(errc::limit_exceeded, doing,
                "its sample rate is " + std::to_string(info.sample_rate));
  const auto total = static_cast<std::int64_t>(info.frames);
  const auto range = range_of(options, static_cast<int>(info.sample_rate), total, draw, doing);
  const auto first = std::min(range.first, total);
  const auto end = std::min(range.end.value_or(total), total);
  const auto frame = io::wav_frame_bytes(info);
  const auto samples = std::max<std::int64_t>(0, end - first);
  return {.info = info,
          .bytes = file.subspan(info.data_offset + static_cast<std::size_t>(first) * frame,
                                static_cast<std::size_t>(samples) * frame),
          .samples = samples};
}

static channel_layout wav_channels(const io::wav_info& info) {
  channel_layout masked;
  if (info.channel_mask != 0 &&
      av_channel_layout_from_mask(&masked.get(), info.channel_mask) == 0 &&
      masked.channels() == info.channels)
    return masked;
  return channel_layout::usual(info.channels);
}

static AVSampleFormat wav_sample_format(io::wav_encoding encoding) noexcept {
  constexpr std::array formats{AV_SAMPLE_FMT_U8,  AV_SAMPLE_FMT_S16, AV_SAMPLE_FMT_S32,
                               AV_SAMPLE_FMT_S32, AV_SAMPLE_FMT_FLT, AV_SAMPLE_FMT_DBL};
  return formats[static_cast<std::size_t>(encoding)];
}

// The type of the elements that are stored; that of none for 24 bits.
static std::optional<element_type> plain_type_of(io::wav_encoding encoding) noexcept {
  switch (encoding) {
    case io::wav_encoding::u8: return element_type::u8;
    case io::wav_encoding::i16: return element_type::i16;
    case io::wav_encoding::i24: return std::nullopt;
    case io::wav_encoding::i32: return element_type::i32;
    case io::wav_encoding::f32: return element_type::f32;
    case io::wav_encoding::f64: return element_type::f64;
  }
  return std::nullopt;
}

// Whether samples are as they must be, but for floats of 32 bits.
static bool is_plain(const wav_part& part, const audio_options& options, const sample_sink& to) {
  const auto& info = part.info;
  const bool same_rate = options.sample_rate == 0 ||
                         static_cast<std::uint32_t>(options.sample_rate) == info.sample_rate;
  const bool same_channels = (options.channels == 0 || options.channels == info.channels) &&
                             options.channel_layout.empty();
  const bool same_order = info.channels == 1 || to.layout() == audio_layout::interleaved;
  const bool same_type =
      to.type() == element_type::f32 || to.type() == plain_type_of(info.encoding);
  return same_rate && same_channels && same_order && same_type;
}

static void convert_plain(const wav_part& part, sample_sink& to) {
  if (to.channels() == 0) to.set_channels(part.info.channels);
  const auto place = to.reserve(part.samples);
  const auto samples = std::min(place.capacity, part.samples);
  const auto count = samples * part.info.channels;
  const tensor_spec spec{to.type(), {count}};
  const std::span into(reinterpret_cast<std::byte*>(place.channels[0]), spec.bytes());
  const auto bytes = static_cast<std::size_t>(samples) * io::wav_frame_bytes(part.info);
  io::convert_wav(part.info.encoding, part.bytes.first(bytes), tensor(spec, buffer(nullptr, into)));
  to.commit(samples);
}

// Samples where libswresample can read them: aligned, those of 24 bits as 32.
class wav_block {
 public:
  const std::uint8_t* load(const wav_part& part, std::int64_t first, std::int64_t count) {
    const auto frame = io::wav_frame_bytes(part.info);
    const auto bytes = part.bytes.subspan(static_cast<std::size_t>(first) * frame,
                                          static_cast<std::size_t>(count) * frame);
    const bool wide = part.info.encoding == io::wav_encoding::i24;
    constexpr std::size_t alignment = 8;
    const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % alignment == 0;
    if (!wide && aligned) return reinterpret_cast<const std::uint8_t*>(bytes.data());
    copy_.resize(wide ? bytes.size() / 3 * 4 : bytes.size());
    if (wide) {
      widen(bytes);
    } else {
      std::memcpy(copy_.data(), bytes.data(), bytes.size());
    }
    return copy_.data();
  }

 private:
  // Little-endian samples in the upper 24 bits.
  void widen(std::span<const std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size() / 3; ++i) {
      std::uint32_t value = 0;
      for (std::size_t b = 0; b < 3; ++b)
        value |= std::to_integer<std::uint32_t>(bytes[3 * i + b]) << (8 * (b + 1));
      std::memcpy(copy_.data() + 4 * i, &value, sizeof value);
    }
  }

  std::vector<std::uint8_t> copy_;
};

static void resample_wav(const wav_part& part, const audio_options& options, sample_sink& to,
                         const std::stop_token& stop) {
  constexpr std::int64_t block = 16'384;
  const int rate = static_cast<int>(part.info.sample_rate);
  const int wanted = options.sample_rate > 0 ? options.sample_rate : rate;
  to.expect((rational(part.samples) * wanted / rate).ceil() + 64);
  const sample_layout from{.rate = rate,
                           .format = wav_sample_format(part.info.encoding),
                           .channels = wav_channels(part.info)};
  audio_converter converter(options.sample_rate,
                            wanted_channels(options.channels, options.channel_layout, to.doing()));
  wav_block samples;
  for (std::int64_t first = 0; first < part.samples && !to.is_full(); first += block) {
    if (stop.stop_requested()) throw error(errc::stopped, to.doing());
    const auto count = std::min(block, part.samples - first);
    const auto* loaded = samples.load(part, first, count);
    converter.convert(from, &loaded, static_cast<int>(count), to);
  }
  converter.finish(to);
}

// Packets of one stream to samples in a sink. `window` and `origin` as window_cutter has them.
class audio_decoding {
 public:
  audio_decoding(const stream_info& stream, const time_window& window,
                 std::optional<audio_origin> origin, const audio_options& options, sample_sink& to,
                 const std::stop_token& stop)
      : by_(stream, {.damage = options.damage}),
        converter_(options.sample_rate,
                   wanted_channels(options.channels, options.channel_layout, to.doing())),
        cutter_(window, origin),
        counts_(window.begin && !origin),
        to_(to),
        stop_(stop) {}

  // Returns false once the sink is full, or the window is.
  bool send(const packet& next) {
    if (stop_.stop_requested()) throw error(errc::stopped, to_.doing());
    by_.send(next);
    receive_all();
    return !to_.is_full() && !cutter_.is_past_end();
  }

  // Returns how many packets and frames were damaged.
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

  // Samples of several rates tell no time.
  void check_rate(const frame& next) {
    const int rate = std::exchange(rate_, next.sample_rate());
    if (rate == 0 || rate == rate_) return;
    throw error(errc::unsupported, to_.doing(),
                "its sample rate changes from " + std::to_string(rate) + " to " +
                    std::to_string(rate_) + ", so that it has no windows behind that");
  }

  decoder by_;
  audio_converter converter_;
  window_cutter cutter_;
  bool counts_;   // samples, from the first one on
  int rate_ = 0;  // of the last frame
  std::vector<frame> cut_;
  sample_sink& to_;
  const std::stop_token& stop_;
};

// How many samples of the result a file states for this many seconds. Only to allocate once: it may
// be wrong.
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

// The first sample of a stream; empty if there is none.
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

// How many samples at the end of a packet are not of the audio.
static std::int64_t discarded_at_end(const AVPacket& of) noexcept {
  std::size_t size = 0;
  const auto* data = av_packet_get_side_data(&of, AV_PKT_DATA_SKIP_SAMPLES, &size);
  if (data == nullptr || size < 8) return 0;
  return io::load_little<std::uint32_t>(reinterpret_cast<const std::byte*>(data) + 4);
}

// The samples of a stream by the times of its packets: all of them, or fewer by those of a packet.
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

// Whether a time may be in several parts of a file.
static bool is_of_parts(format_reader& file, const stream_info& stream) {
  const auto& back = file.find_step_back(stream.index());
  return back && file.begins_part(stream.index(), *back);
}

// The samples of a stream by decoding it.
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

// How many samples a stream has, for a random window.
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

// Whether decoding of a window does not begin with the first packets, over which a seek near them
// may pass.
static bool begins_late(const stream_info& stream, const time_window& window) {
  return window.begin && *window.begin > stream.time_base() * lead_in_of(stream);
}

// Goes to where decoding must begin. Returns the first sample of the stream; empty if decoding
// begins with it.
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

// Without the packets in memory at the same time.
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

static void require_wav_stream(const audio_options& options, std::string_view doing) {
  if (options.stream.value_or(0) != 0)
    throw error(errc::invalid_argument, doing,
                "it has no stream " + std::to_string(*options.stream));
}

std::uint64_t decode_samples(const buffer& file, std::string_view name,
                             const audio_options& options, random draw, sample_sink& to,
                             const std::stop_token& stop) {
  const auto wav = find_wav(file.bytes(), name, options.damage);
  if (!wav) return decode_media(file, name, options, draw, to, stop);
  require_wav_stream(options, to.doing());
  const auto part = wav_part_of(wav->info, file.bytes(), options, draw, to.doing());
  if (is_plain(part, options, to))
    convert_plain(part, to);
  else
    resample_wav(part, options, to, stop);
  return wav->is_cut ? 1 : 0;
}

}  // namespace lade::media
