#include "wav_source.hpp"

#include "audio_converter.hpp"
#include "audio_range.hpp"

#include <lade/error.hpp>
#include <lade/media/av/rational.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include <fmt/format.h>

namespace lade::media {

static bool begins_as_wav(std::span<const std::byte> file) noexcept {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const bool riff =
      text.starts_with("RIFF") || text.starts_with("RF64") || text.starts_with("BW64");
  return riff && text.size() >= 12 && text.substr(8, 4) == "WAVE";
}

// The header of a file that ends before its data; empty if the header itself is incomplete.
static std::optional<io::wav_info> find_cut_wav(std::span<const std::byte> file,
                                                std::string_view name) {
  io::wav_header header(std::numeric_limits<std::int64_t>::max(), name);
  while (header.needs_bytes() && header.offset() < file.size()) {
    const auto rest = file.subspan(static_cast<std::size_t>(header.offset()));
    std::array<std::byte, io::wav_header::part_bytes> padded{};
    std::copy_n(rest.begin(), std::min(rest.size(), padded.size()), padded.begin());
    header.take(rest.size() < padded.size() ? padded : rest);
  }
  if (header.needs_bytes()) return std::nullopt;
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
    while (header.needs_bytes()) header.take(file.subspan(header.offset()));
  } catch (const error& refused) {
    if (refused.code() == errc::unsupported) return std::nullopt;  // FFmpeg supports more encodings
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
  std::int64_t samples = 0;          // per channel
};

static wav_part wav_part_of(const io::wav_info& info, std::span<const std::byte> file,
                            const audio_options& options, random draw, std::string_view doing) {
  if (info.sample_rate > std::uint32_t{1} << 30)
    throw error(errc::limit_exceeded, doing,
                fmt::format("its sample rate is {}", info.sample_rate));
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

// The element type of stored samples; empty for 24 bits.
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

// Whether samples need no conversion except to 32-bit floats.
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
  const auto room = to.reserve(part.samples);
  const auto samples = std::min(room.capacity, part.samples);
  const auto count = samples * part.info.channels;
  const tensor_spec spec{to.type(), {count}};
  const std::span into(reinterpret_cast<std::byte*>(room.channels[0]), spec.bytes());
  const auto bytes = static_cast<std::size_t>(samples) * io::wav_frame_bytes(part.info);
  io::convert_wav(part.info.encoding, part.bytes.first(bytes), tensor(spec, buffer(nullptr, into)));
  to.commit(samples);
}

// Samples as libswresample requires them: aligned, and 24 bits widened to 32.
class wav_block {
 public:
  const std::uint8_t* load(const wav_part& part, std::int64_t first, std::int64_t count) {
    const auto frame = io::wav_frame_bytes(part.info);
    const auto bytes = part.bytes.subspan(static_cast<std::size_t>(first) * frame,
                                          static_cast<std::size_t>(count) * frame);
    const bool is_wide = part.info.encoding == io::wav_encoding::i24;
    constexpr std::size_t alignment = 8;
    const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % alignment == 0;
    if (!is_wide && aligned) return reinterpret_cast<const std::uint8_t*>(bytes.data());
    copy_.resize(is_wide ? bytes.size() / 3 * 4 : bytes.size());
    if (is_wide) {
      widen(bytes);
    } else {
      std::memcpy(copy_.data(), bytes.data(), bytes.size());
    }
    return copy_.data();
  }

 private:
  // Stores little-endian samples in the upper 24 bits of 32.
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
  const int output_rate = options.sample_rate > 0 ? options.sample_rate : rate;
  to.expect((rational(part.samples) * output_rate / rate).ceil() + 64);
  const sample_layout from{.rate = rate,
                           .format = wav_sample_format(part.info.encoding),
                           .channels = wav_channels(part.info)};
  audio_converter converter(
      options.sample_rate,
      requested_channels(options.channels, options.channel_layout, to.doing()));
  wav_block samples;
  for (std::int64_t first = 0; first < part.samples && !to.is_full(); first += block) {
    if (stop.stop_requested()) throw error(errc::stopped, to.doing());
    const auto count = std::min(block, part.samples - first);
    const auto* loaded = samples.load(part, first, count);
    converter.convert(from, &loaded, static_cast<int>(count), to);
  }
  converter.finish(to);
}

static void require_wav_stream(const audio_options& options, std::string_view doing) {
  if (options.stream.value_or(0) != 0)
    throw error(errc::invalid_argument, doing, fmt::format("it has no stream {}", *options.stream));
}

std::uint64_t decode_wav(const wav_file& wav, std::span<const std::byte> file,
                         const audio_options& options, random draw, sample_sink& to,
                         const std::stop_token& stop) {
  require_wav_stream(options, to.doing());
  const auto part = wav_part_of(wav.info, file, options, draw, to.doing());
  if (is_plain(part, options, to))
    convert_plain(part, to);
  else
    resample_wav(part, options, to, stop);
  return wav.is_cut ? 1 : 0;
}

}  // namespace lade::media
