#include "known_colours.hpp"

#include "elementary_stream.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

extern "C" {
#include <libavcodec/codec_par.h>
#include <libavcodec/packet.h>
}

namespace lade::cuda {

using header_bytes = std::span<const std::byte>;

static void append_header(std::string& key, header_bytes header) {
  const auto size = header.size();
  key.append(reinterpret_cast<const char*>(&size), sizeof size);
  key.append(reinterpret_cast<const char*>(header.data()), size);
}

// The NAL units of a stream in Annex B format, in which emulation prevention keeps start codes out
// of them (ITU-T H.264, 7.4.1).
static std::vector<header_bytes> units_of(header_bytes stream) {
  constexpr std::array start_code{std::byte{0}, std::byte{0}, std::byte{1}};
  const auto next = [&](auto from) {
    return std::search(from, stream.end(), start_code.begin(), start_code.end());
  };
  std::vector<header_bytes> units;
  for (auto at = next(stream.begin()); at != stream.end();) {
    const auto first = at + start_code.size();
    at = next(first);
    if (first != at) units.emplace_back(first, at);
  }
  return units;
}

// Parameter sets (ITU-T H.264, table 7-1; H.265, table 7-1).
struct parameter_units {
  unsigned shift;
  unsigned mask;
  unsigned first;
  unsigned last;
  unsigned sequence;  // the one that states colours

  unsigned type_of(header_bytes unit) const {
    return std::to_integer<unsigned>(unit.front()) >> shift & mask;
  }
};
static constexpr parameter_units units_of_h264{0, 31, 7, 8, 7};
static constexpr parameter_units units_of_hevc{1, 63, 32, 34, 33};

// Zeros after a unit do not belong to it.
static header_bytes without_zeros(header_bytes unit) {
  while (!unit.empty() && unit.back() == std::byte{0}) unit = unit.first(unit.size() - 1);
  return unit;
}

// Returns false if there are several sequence parameter sets: a slice names the one that it uses.
static bool append_parameter_sets(std::string& key, const media::stream_info& stream,
                                  const media::packet& from, const parameter_units& kinds) {
  elementary_stream converter(stream);
  header_bytes sequence;
  for (const auto unit : units_of(converter.convert(from, true))) {
    const auto type = kinds.type_of(unit);
    if (type < kinds.first || type > kinds.last) continue;
    const auto set = without_zeros(unit);
    append_header(key, set);
    if (type != kinds.sequence) continue;
    if (!sequence.empty() && !std::ranges::equal(sequence, set)) return false;
    sequence = set;
  }
  return !sequence.empty();
}

// Reads a number in leb128 (AV1, 4.10.5), and removes it.
static std::optional<std::size_t> take_leb128(header_bytes& from) {
  std::size_t value = 0;
  for (unsigned shift = 0; shift < 56 && !from.empty(); shift += 7) {
    const auto byte = std::to_integer<std::size_t>(from.front());
    from = from.subspan(1);
    value |= (byte & 127) << shift;
    if (byte < 128) return value;
  }
  return std::nullopt;
}

// Appends the sequence headers before the first frame (AV1, 5.3.1 and 6.2.2). Returns false if
// there is none.
static bool append_sequence_headers(std::string& key, header_bytes packet) {
  constexpr unsigned sequence = 1, frame_header = 3, frame = 6;
  bool is_any = false;
  while (packet.size() > 1) {
    const auto first = std::to_integer<unsigned>(packet.front());
    const auto type = first >> 3 & 15;
    if (type == frame_header || type == frame) return is_any;
    const bool has_extension = (first & 4) != 0, has_size = (first & 2) != 0;
    packet = packet.subspan(has_extension ? 2 : 1);
    const auto size = has_size ? take_leb128(packet) : packet.size();
    if (!size || *size > packet.size()) return false;
    if (type == sequence) append_header(key, packet.first(*size));
    is_any = is_any || type == sequence;
    packet = packet.subspan(*size);
  }
  return false;
}

// The first 9 bytes of a key frame's header state colours, depth and size; in profile 3, the first
// 10 (VP9, 6.2).
static bool append_vp9_header(std::string& key, header_bytes packet) {
  if (packet.empty()) return false;
  const bool is_profile_3 = (packet.front() & std::byte{0x30}) == std::byte{0x30};
  const std::size_t bytes = is_profile_3 ? 10 : 9;
  append_header(key, packet.first(std::min(bytes, packet.size())));
  return true;
}

// Returns false if the headers do not determine the colours: VP8 codes them after the sizes of the
// partitions, and MPEG-2 in the headers of each picture.
static bool append_headers(std::string& key, const media::stream_info& stream,
                           const media::packet& from) {
  switch (stream.parameters().codec_id) {
    case AV_CODEC_ID_H264: return append_parameter_sets(key, stream, from, units_of_h264);
    case AV_CODEC_ID_HEVC: return append_parameter_sets(key, stream, from, units_of_hevc);
    case AV_CODEC_ID_AV1: return append_sequence_headers(key, from.data());
    case AV_CODEC_ID_VP9: return append_vp9_header(key, from.data());
    default: return false;
  }
}

static void append_parameters(std::string& key, const AVCodecParameters& parameters) {
  for (const int value :
       {static_cast<int>(parameters.codec_id), static_cast<int>(parameters.codec_tag),
        parameters.format, parameters.width, parameters.height, parameters.profile,
        parameters.level, static_cast<int>(parameters.field_order),
        static_cast<int>(parameters.color_range), static_cast<int>(parameters.color_primaries),
        static_cast<int>(parameters.color_trc), static_cast<int>(parameters.color_space),
        static_cast<int>(parameters.chroma_location), parameters.bits_per_coded_sample,
        parameters.bits_per_raw_sample})
    key.append(reinterpret_cast<const char*>(&value), sizeof value);
  append_header(key, std::as_bytes(std::span(parameters.extradata,
                                             static_cast<std::size_t>(parameters.extradata_size))));
}

static bool brings_parameters(const media::packet& key) {
  const auto brings = [&](AVPacketSideDataType type) {
    return av_packet_get_side_data(&key.get(), type, nullptr) != nullptr;
  };
  return brings(AV_PKT_DATA_NEW_EXTRADATA) || brings(AV_PKT_DATA_PARAM_CHANGE);
}

// The key of the colours of a key frame; empty if it is unknown or too long.
static std::string colour_key(const media::stream_info& stream, const media::packet& key_frame) {
  constexpr std::size_t longest = std::size_t{4} << 10;
  std::string key;
  append_parameters(key, stream.parameters());
  if (brings_parameters(key_frame) || !append_headers(key, stream, key_frame)) return {};
  return key.size() > longest ? std::string() : key;
}

picture_colours known_colours::of(const media::video& from, std::span<const std::int64_t> numbers) {
  const auto first = from.index().ranges(numbers).front().first;
  const auto packet = from.packet_at(first);
  const auto key = colour_key(from.stream(), packet);
  if (const auto known = find(key)) return *known;
  const auto colours = colours_of(from.stream(), packet, options_);
  keep(key, colours);
  return colours;
}

std::size_t known_colours::decoded() const {
  std::lock_guard lock(mutex_);
  return decoded_;
}

std::optional<picture_colours> known_colours::find(const std::string& key) const {
  std::lock_guard lock(mutex_);
  const auto at = cache_.find(key);
  return at == cache_.end() ? std::nullopt : std::optional(at->second);
}

// A full cache is cleared.
void known_colours::keep(const std::string& key, const picture_colours& decoded) {
  constexpr std::size_t most = 64;
  std::lock_guard lock(mutex_);
  ++decoded_;
  if (key.empty()) return;
  if (cache_.size() >= most) cache_.clear();
  cache_.emplace(key, decoded);
}

}  // namespace lade::cuda
