#include <lade/buffer_pool.hpp>
#include <lade/continue_on.hpp>
#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/media/av/audio.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/media/slot.hpp>
#include <lade/runtime.hpp>
#include <lade/this_context.hpp>

#include "audio_converter.hpp"
#include "audio_range.hpp"
#include "audio_source.hpp"
#include "half_floats.hpp"
#include "stream_fields.hpp"
#include "wav_source.hpp"
#include "window_start.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <list>
#include <optional>
#include <stop_token>
#include <utility>

#include <fmt/format.h>

namespace lade::media {

struct decode_audio::texts {
  std::string field;
  std::string channel_layout;
};

static void require_audio_option(bool condition, std::string_view reason) {
  if (!condition) throw error(errc::invalid_argument, "make decode_audio", reason);
}

static void check_audio_options(const audio_options& options) {
  constexpr double most_seconds = 1e9;
  constexpr std::int64_t most_samples = std::int64_t{1} << 40;
  const auto in_range = [](double seconds) { return seconds >= 0 && seconds <= most_seconds; };
  require_audio_option(options.sample_rate >= 0 && options.sample_rate <= most_sample_rate,
                       "sample_rate must be 1 to 768000, or 0");
  require_audio_option(is_sample_type(options.type) || options.type == element_type::f16 ||
                           options.type == element_type::bf16,
                       "type must be f32, f64, f16, bf16, u8, i16 or i32");
  require_audio_option(options.layout <= audio_layout::interleaved,
                       "layout is no value of audio_layout");
  require_audio_option(options.fit <= audio_fit::exact, "fit is no value of audio_fit");
  require_audio_option(!options.stream || *options.stream >= 0, "stream must be 0 or above");
  require_audio_option(in_range(options.offset), "offset must be 0 to 1e9 seconds");
  require_audio_option(std::isinf(options.duration) || in_range(options.duration),
                       "duration must be 0 to 1e9 seconds");
  require_audio_option(options.duration > 0, "duration must be above 0");
  require_audio_option(options.max_samples > 0 && options.max_samples <= most_samples,
                       "max_samples must be 1 to 2^40");
  require_audio_option(options.samples >= 0 && options.samples <= options.max_samples,
                       "samples must be at most max_samples, and not below 0");
  require_audio_option(options.samples > 0 || options.fit == audio_fit::pad_or_crop,
                       "fit needs samples");
  require_audio_option(
      !options.random_offset || options.samples > 0 || std::isfinite(options.duration),
      "random_offset needs a duration or samples");
}

static tensor_spec audio_spec(const audio_options& options, int channels) {
  return {options.type, audio_shape(options.layout, channels, options.samples)};
}

decode_audio::decode_audio(const audio_options& options)
    : texts_(std::make_shared<const texts>(
          texts{std::string(options.field), std::string(options.channel_layout)})),
      options_(options),
      damaged_(std::make_shared<std::atomic<std::uint64_t>>(0)) {
  options_.field = texts_->field;
  options_.channel_layout = texts_->channel_layout;
  check_audio_options(options);
  options_.channels =
      requested_channels(options.channels, options.channel_layout, "make decode_audio").channels();
  require_audio_option(options.samples == 0 || options_.channels > 0, "samples need channels");
  spec_ = audio_spec(options_, options_.channels);
}

// libswresample does not write 16-bit floats.
static element_type converted_type(const audio_options& options) noexcept {
  return is_sample_type(options.type) ? options.type : element_type::f32;
}

static void copy_audio_elements(const std::byte* from, std::byte* to, std::size_t count,
                                element_type type) noexcept {
  const auto* values = reinterpret_cast<const float*>(from);
  auto* halves = reinterpret_cast<std::uint16_t*>(to);
  if (type == element_type::f16)
    std::transform(values, values + count, halves, f16_of);
  else if (type == element_type::bf16)
    std::transform(values, values + count, halves, bf16_of);
  else if (count > 0)
    std::memcpy(to, from, count * element_bytes(type));
}

// Copies audio into a slot of the same type or of 16-bit floats with at least as many samples, and
// fills the rest with silence.
static void copy_padded(const tensor& from, const tensor& slot, audio_layout layout) {
  const bool planar = layout == audio_layout::planar;
  const auto rows = static_cast<std::size_t>(planar ? slot.shape()[0] : 1);
  const auto per_row = [&](const tensor& value) {
    return rows == 0 ? 0 : value.spec().elements() / rows;
  };
  const auto there = per_row(from);
  const auto elements = per_row(slot);
  const auto bytes = element_bytes(slot.type());
  for (std::size_t i = 0; i < rows; ++i) {
    auto* row = slot.bytes() + i * elements * bytes;
    copy_audio_elements(from.bytes() + i * there * element_bytes(from.type()), row, there,
                        slot.type());
    if (elements > there)
      write_silence(row + there * bytes, (elements - there) * bytes, slot.type());
  }
}

// The functions below decode with a `source`: a function that decodes a file's bytes or packets
// into a sink.

static void require_samples(const sample_sink& sink) {
  if (sink.samples() == 0)
    throw error(errc::invalid_data, sink.doing(), "there are no samples in the window");
}

[[noreturn]] static void refuse_length(const std::string& doing, std::int64_t samples,
                                       std::string_view relation, std::int64_t length) {
  throw error(errc::invalid_data, doing,
              fmt::format("it has {} samples, {} {}", samples, relation, length));
}

template <class Source>
static tensor decode_all(const audio_options& options, const std::string& doing, Source source) {
  sample_sink sink(converted_type(options), options.layout, options.max_samples, doing);
  source(sink);
  require_samples(sink);
  return std::move(sink).take();
}

// Fills a slot of a type that libswresample writes with the beginning of the audio.
template <class Source>
static void decode_beginning(const tensor& slot, const audio_options& options,
                             const std::string& doing, Source source) {
  sample_sink sink(slot, options.layout, doing);
  source(sink);
  require_samples(sink);
  if (options.fit == audio_fit::crop && !sink.is_full())
    refuse_length(doing, sink.samples(), "fewer than", options.samples);
  sink.pad();
}

template <class Source>
static void decode_fitted(const tensor& slot, const audio_options& options,
                          const std::string& doing, Source source) {
  const auto type = converted_type(options);
  if (crops(options) && slot.type() == type) return decode_beginning(slot, options, doing, source);
  if (crops(options)) {
    const tensor_spec spec{type, slot.shape()};
    const tensor whole(spec, allocate_now(spec.bytes()));
    decode_beginning(whole, options, doing, source);
    return copy_padded(whole, slot, options.layout);
  }
  const auto whole = decode_all(options, doing, source);
  const auto samples = whole.shape()[options.layout == audio_layout::planar ? 1 : 0];
  if (samples > options.samples) refuse_length(doing, samples, "more than", options.samples);
  if (samples < options.samples && options.fit == audio_fit::exact)
    refuse_length(doing, samples, "fewer than", options.samples);
  copy_padded(whole, slot, options.layout);
}

template <class Source>
static tensor decode_tensor(const audio_options& options, const std::string& doing, Source source) {
  if (options.samples > 0) {
    const auto spec = audio_spec(options, options.channels);
    const tensor slot(spec, allocate_now(spec.bytes()));
    decode_fitted(slot, options, doing, source);
    return slot;
  }
  auto whole = decode_all(options, doing, source);
  if (whole.type() == options.type) return whole;
  const tensor_spec spec{options.type, whole.shape()};
  const tensor halves(spec, allocate_now(spec.bytes()));
  copy_padded(whole, halves, options.layout);
  return halves;
}

static void require_audio_slot(const tensor& slot, const tensor_spec& spec,
                               std::string_view doing) {
  if (spec.elements() == 0)
    throw error(errc::invalid_argument, doing, "a slot needs the options samples and channels");
  require_slot_of(spec, slot, doing);
}

void decode_audio::operator()(const sample& in, const tensor& slot, random draw) const {
  const auto doing = "decode " + in.name();
  const auto& file = encoded_bytes(in, options_.field, doing);
  require_audio_slot(slot, spec_, doing);
  decode_fitted(slot, options_, doing, [&](sample_sink& to) {
    *damaged_ += decode_samples(file, in.name(), options_, draw, to, {});
  });
}

tensor decode_audio::operator()(const sample& in, random draw) const {
  const auto doing = "decode " + in.name();
  const auto& file = encoded_bytes(in, options_.field, doing);
  return decode_tensor(options_, doing, [&](sample_sink& to) {
    *damaged_ += decode_samples(file, in.name(), options_, draw, to, {});
  });
}

// Memory for floats that become 16-bit floats.
static std::size_t staged_bytes(const audio_options& options, const tensor_spec& spec) noexcept {
  return options.type == converted_type(options) ? 0 : spec.elements() * sizeof(float);
}

// The approximate memory of a decoder, its packet and its frames.
static constexpr std::size_t decoder_bytes = std::size_t{256} << 10;

std::size_t decode_audio::memory_to_write(const sample& in) const {
  const auto& file = encoded_bytes(in, options_.field, "decode");
  const bool decodes = !find_wav(file.bytes(), in.name(), options_.damage);
  return staged_bytes(options_, spec_) + (decodes ? decoder_bytes : 0);
}

std::size_t decode_audio::memory_needed(const sample& in) const {
  const auto needed = memory_to_write(in);
  if (options_.samples > 0) return spec_.bytes() + needed;
  const auto& file = encoded_bytes(in, options_.field, "decode");
  const auto wav = find_wav(file.bytes(), in.name(), options_.damage);
  if (!wav) return needed;
  const auto& info = wav->info;
  const double seconds = std::min(info.seconds(), options_.duration);
  const double rate = options_.sample_rate > 0 ? options_.sample_rate : info.sample_rate;
  const double channels = options_.channels > 0 ? options_.channels : info.channels;
  const double samples = std::min(seconds * rate, static_cast<double>(options_.max_samples));
  return needed + static_cast<std::size_t>(samples * channels) * element_bytes(options_.type);
}

// Whether reading only the packets of a window justifies more requests.
static bool reads_part(const audio_options& options, const byte_reader& from) noexcept {
  constexpr std::uint64_t small = std::uint64_t{1} << 20;
  const bool part = options.offset > 0 || std::isfinite(options.duration) || crops(options);
  return part && !from.is_in_memory() && from.size() > small;
}

// Decodes into a sink. Throws error(stopped) after a stop request.
using decode_into_sink = std::function<void(sample_sink& to, const std::stop_token& stop)>;

static tensor decode_from(const audio_options& options, const std::string& name,
                          const decode_into_sink& source, const std::stop_token& stop) {
  return decode_tensor(options, "decode " + name, [&](sample_sink& to) { source(to, stop); });
}

// Decodes with the memory of the stage whose context is `current`.
static tensor decode_within(const context& current, memory_charge reserved,
                            const audio_options& options, const std::string& name,
                            const decode_into_sink& source) {
  const plain_call call(current, std::move(reserved));
  return decode_from(options, name, source, current.stop);
}

// `source` must outlive the await.
static task<tensor> decode_on_pool(audio_options options, std::string name,
                                   const decode_into_sink& source) {
  auto& current = co_await this_context_reference();
  const auto spec = audio_spec(options, options.channels);
  auto reserved = co_await charge(decoder_bytes + spec.bytes() + staged_bytes(options, spec));
  co_await continue_on_pool();
  co_return decode_within(current, std::move(reserved), options, name, source);
}

static task<tensor> read_all_audio(audio_options options, std::shared_ptr<const byte_reader> from,
                                   random draw, std::atomic<std::uint64_t>& damaged) {
  const auto file = co_await from->read_at(0, static_cast<std::size_t>(from->size()));
  const decode_into_sink source = [&](sample_sink& to, const std::stop_token& stop) {
    damaged += decode_samples(file, from->name(), options, draw, to, stop);
  };
  co_return co_await decode_on_pool(options, from->name(), source);
}

static const stream_info& audio_stream_of(const demuxer& file, const audio_options& options) {
  if (!options.stream) return file.best(stream_kind::audio);
  const auto doing = "read " + file.name();
  if (static_cast<std::size_t>(*options.stream) >= file.streams().size())
    throw error(errc::invalid_argument, doing, fmt::format("it has no stream {}", *options.stream));
  const auto& stream = file.streams()[static_cast<std::size_t>(*options.stream)];
  require_audio(stream, doing);
  return stream;
}

// Finds the first sample of a stream; at time 0 if there is none.
static task<audio_origin> find_first_sample(demuxer& file, const stream_info& stream,
                                            const audio_options& options) {
  if (const auto stated = stated_first_sample(stream)) co_return *stated;
  constexpr std::size_t few = 8;
  first_sample_finder finder(stream, options.damage);
  auto beginning = file.stream(stream.index(), packet_stream_options{.packets = few});
  while (auto* next = co_await beginning.next())
    for (const auto& each : *next)
      if (finder.send(each)) co_return *finder.found();
  co_return finder.found().value_or(audio_origin{});
}

// Converts the window to times of the stream. Extends its end slightly if times are rounded.
static time_window read_window_of(const time_window& from_first, const rational& first,
                                  const stream_info& stream) {
  time_window window;
  if (from_first.begin) window.begin = first + *from_first.begin;
  if (!from_first.end) return window;
  window.end = first + *from_first.end;
  if (has_rounded_times(stream)) *window.end = *window.end + stream.time_base() * 2;
  return window;
}

// Reads packets from the beginning of a stream to the end of a window. Measures them by their
// durations, since times may have gaps, and adds a margin, since durations are rounded and decoders
// drop samples. Reads all of a stream with several edits: its packets may have few samples.
static task<packets> read_beginning(demuxer& file, const stream_info& stream,
                                    const time_window& window) {
  const bool ends = window.end && !stream.stored().edited;
  const auto enough = ends ? window.end->to_double() * 1.01 + 1 : HUGE_VAL;
  const auto unit = stream.time_base().to_double();
  std::vector<packet> all;
  std::list<memory_charge> charges;
  constexpr std::size_t few = 64;
  auto beginning = file.stream(stream.index(), packet_stream_options{.packets = few});
  double seconds = 0;
  while (auto* next = co_await beginning.next()) {
    auto charged = co_await charge(next->memory_bytes());
    charges.push_back(std::move(charged));
    for (const auto& each : *next) seconds += static_cast<double>(each.duration()) * unit;
    all.insert(all.end(), next->begin(), next->end());
    if (seconds > enough) break;
  }
  packets result(stream, std::move(all));
  for (auto& each : charges) result.attach(std::move(each));
  co_return result;
}

// `first`: the time of the first sample; empty if decoding must start with it.
static task<packets> read_packets(demuxer& file, const stream_info& stream, time_window window,
                                  const std::optional<audio_origin>& first) {
  if (!first) co_return co_await read_beginning(file, stream, window);
  co_return co_await file.read(stream.index(), read_window_of(window, first->time, stream));
}

static task<tensor> read_audio_part(audio_options options, std::shared_ptr<const byte_reader> from,
                                    random draw, std::atomic<std::uint64_t>& damaged) {
  const demux_options demuxing{.damage = options.damage};
  auto file = co_await demuxer::open(from, demuxing);
  const auto& stream = audio_stream_of(file, options);
  if (options.random_offset && !(states_samples(file.format()) && stream.duration()))
    co_return co_await read_all_audio(options, from, draw, damaged);
  const auto window = audio_window_of(options, stream, draw, "decode " + from->name());
  std::optional<audio_origin> first;
  if (window.begin && !needs_beginning(stream, file.format()))
    first = co_await find_first_sample(file, stream, options);
  const auto read = co_await read_packets(file, stream, window, first);
  damaged += file.damaged();
  const decode_into_sink source = [&](sample_sink& to, const std::stop_token& stop) {
    damaged += decode_samples(read, window, first, options, to, stop);
  };
  co_return co_await decode_on_pool(options, from->name(), source);
}

// The coroutine owns a copy of the decoder, and thus the strings of its options.
template <class Counter>
static task<tensor> read_audio(decode_audio decode, std::shared_ptr<const byte_reader> from,
                               random draw, Counter damaged) {
  if (!from) throw error(errc::invalid_argument, "load audio", "the reader is null");
  if (reads_part(decode.options(), *from))
    co_return co_await read_audio_part(decode.options(), std::move(from), draw, *damaged);
  co_return co_await read_all_audio(decode.options(), std::move(from), draw, *damaged);
}

task<tensor> decode_audio::read(std::shared_ptr<const byte_reader> from, random draw) const {
  return read_audio(*this, std::move(from), draw, damaged_);
}

task<tensor> load_audio(std::shared_ptr<const byte_reader> from, const audio_options& options,
                        random draw) {
  return decode_audio(options).read(std::move(from), draw);
}

static task<tensor> load_audio_file(decode_audio decode, std::string path, random draw) {
  auto from = co_await io::open_reader(std::move(path));
  co_return co_await decode.read(std::move(from), draw);
}

task<tensor> load_audio(std::string path, const audio_options& options, random draw) {
  return load_audio_file(decode_audio(options), std::move(path), draw);
}

}  // namespace lade::media
