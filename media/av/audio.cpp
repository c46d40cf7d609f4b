#include <lade/buffer_pool.hpp>
#include <lade/detail/continue_on.hpp>
#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/media/av/audio.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/media/slot.hpp>
#include <lade/runtime.hpp>
#include <lade/this_context.hpp>

#include "audio_converter.hpp"
#include "audio_source.hpp"
#include "half_floats.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <stop_token>
#include <utility>

namespace lade::media {

struct decode_audio::texts {
  std::string field;
  std::string channel_layout;
};

static void require_audio_option(bool condition, std::string_view why) {
  if (!condition) throw error(errc::invalid_argument, "make decode_audio", why);
}

static void check_audio_options(const audio_options& options) {
  constexpr double most_seconds = 1e9;
  constexpr std::int64_t most_samples = std::int64_t{1} << 40;
  const auto in_range = [](double seconds) { return seconds >= 0 && seconds <= most_seconds; };
  require_audio_option(options.sample_rate >= 0 && options.sample_rate <= most_sample_rate,
                       "sample_rate must be 1 to 768000, or 0");
  require_audio_option(options.type == element_type::f32 || options.type == element_type::f16 ||
                           options.type == element_type::bf16 || options.type == element_type::i16,
                       "type must be f32, f16, bf16 or i16");
  require_audio_option(in_range(options.offset), "offset must be 0 to 1e9 seconds");
  require_audio_option(std::isinf(options.duration) || in_range(options.duration),
                       "duration must be 0 to 1e9 seconds");
  require_audio_option(options.duration > 0, "duration must be above 0");
  require_audio_option(options.max_samples > 0 && options.max_samples <= most_samples,
                       "max_samples must be 1 to 2^40");
  require_audio_option(options.samples >= 0 && options.samples <= options.max_samples,
                       "samples must be at most max_samples, and not below 0");
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
      wanted_channels(options.channels, options.channel_layout, "make decode_audio").channels();
  require_audio_option(options.samples == 0 || options_.channels > 0, "samples need channels");
  spec_ = audio_spec(options_, options_.channels);
}

// libswresample writes f32 or i16.
static element_type converted_type(const audio_options& options) noexcept {
  return options.type == element_type::i16 ? element_type::i16 : element_type::f32;
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

// Copies audio into a slot of its own type or of halves, which has at least as many samples, and
// zeros behind it.
static void copy_padded(const tensor& from, const tensor& slot, audio_layout layout) {
  const bool planar = layout == audio_layout::planar;
  const auto rows = static_cast<std::size_t>(planar ? slot.shape()[0] : 1);
  const auto per_row = [&](const tensor& of) {
    return rows == 0 ? 0 : of.spec().elements() / rows;
  };
  const auto there = per_row(from);
  const auto wanted = per_row(slot);
  const auto bytes = element_bytes(slot.type());
  for (std::size_t i = 0; i < rows; ++i) {
    auto* row = slot.bytes() + i * wanted * bytes;
    copy_audio_elements(from.bytes() + i * there * element_bytes(from.type()), row, there,
                        slot.type());
    if (wanted > there) std::memset(row + there * bytes, 0, (wanted - there) * bytes);
  }
}

// What decodes into a sink is a function `source`: a file's bytes, or packets.

static void require_samples(const sample_sink& sink) {
  if (sink.samples() == 0)
    throw error(errc::invalid_data, sink.doing(), "there are no samples in the window");
}

[[noreturn]] static void refuse_length(const std::string& doing, std::int64_t samples,
                                       std::string_view relation, std::int64_t wanted) {
  throw error(errc::invalid_data, doing,
              "it has " + std::to_string(samples) + " samples, " + std::string(relation) + " " +
                  std::to_string(wanted));
}

template <class Source>
static tensor decode_all(const audio_options& options, const std::string& doing, Source source) {
  sample_sink sink(converted_type(options), options.layout, options.max_samples, doing);
  source(sink);
  require_samples(sink);
  return std::move(sink).take();
}

// Fills a slot of f32 or i16 with the beginning of the audio.
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

// FFmpeg copies packets out of the file.
std::size_t decode_audio::memory_to_write(const sample& in) const {
  const auto& file = encoded_bytes(in, options_.field, "decode");
  const bool narrows = options_.type != converted_type(options_);
  const auto staged = narrows ? spec_.elements() * sizeof(float) : 0;
  return staged + (find_wav(file.bytes(), in.name()) ? 0 : file.size());
}

std::size_t decode_audio::memory_needed(const sample& in) const {
  const auto needed = memory_to_write(in);
  if (options_.samples > 0) return spec_.bytes() + needed;
  const auto& file = encoded_bytes(in, options_.field, "decode");
  const auto wav = find_wav(file.bytes(), in.name());
  if (!wav) return needed;
  const double seconds = std::min(wav->seconds(), options_.duration);
  const double rate = options_.sample_rate > 0 ? options_.sample_rate : wav->sample_rate;
  const double channels = options_.channels > 0 ? options_.channels : wav->channels;
  const double samples = std::min(seconds * rate, static_cast<double>(options_.max_samples));
  return needed + static_cast<std::size_t>(samples * channels) * element_bytes(options_.type);
}

// Whether reading the packets of a window is worth more requests than reading everything.
static bool reads_part(const audio_options& options, const byte_reader& from) noexcept {
  constexpr std::uint64_t small = std::uint64_t{1} << 20;
  const bool part = options.offset > 0 || std::isfinite(options.duration) || crops(options);
  return part && !from.is_in_memory() && from.size() > small;
}

// Decodes into a sink, until it is asked to stop.
using decode_into_sink = std::function<void(sample_sink& to, const std::stop_token& stop)>;

static tensor decode_from(const audio_options& options, const std::string& name,
                          const decode_into_sink& source, const std::stop_token& stop) {
  return decode_tensor(options, "decode " + name, [&](sample_sink& to) { source(to, stop); });
}

// `source` must outlive the await.
static task<tensor> decode_on_pool(audio_options options, std::string name,
                                   const decode_into_sink& source) {
  auto& here = co_await detail::this_context_reference();
  if (here.runtime) co_await detail::continue_on(here.runtime->pool());
  co_return decode_from(options, name, source, here.stop);
}

static task<tensor> read_all_audio(audio_options options, std::shared_ptr<const byte_reader> from,
                                   random draw, std::atomic<std::uint64_t>& damaged) {
  const auto file = co_await from->read_at(0, static_cast<std::size_t>(from->size()));
  const decode_into_sink source = [&](sample_sink& to, const std::stop_token& stop) {
    damaged += decode_samples(file, from->name(), options, draw, to, stop);
  };
  co_return co_await decode_on_pool(options, from->name(), source);
}

static task<tensor> read_audio_part(audio_options options, std::shared_ptr<const byte_reader> from,
                                    random draw, std::atomic<std::uint64_t>& damaged) {
  auto file = co_await demuxer::open(from);
  const auto& stream = file.best(stream_kind::audio);
  const auto window = audio_window_of(options, stream, draw, "decode " + from->name());
  const auto read = co_await file.read(stream.index(), window);
  const decode_into_sink source = [&](sample_sink& to, const std::stop_token& stop) {
    damaged += decode_samples(read, options, to, stop);
  };
  co_return co_await decode_on_pool(options, from->name(), source);
}

// A copy of the decoder, which owns the texts of its options, is the coroutine's.
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
