#include "video_scan.hpp"

#include "format_reader.hpp"
#include "parameter_sets.hpp"
#include "picture_order.hpp"
#include "stream_fields.hpp"

#include <lade/error.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/stop_requested.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace lade::media {

// Whether a VP8 packet has a shown picture (RFC 6386, 9.1: show_frame).
static bool shows_vp8(std::span<const std::byte> data) noexcept {
  return !data.empty() && (std::to_integer<unsigned>(data[0]) & 0x10) != 0;
}

// Whether a VP9 packet has a shown picture. A superframe has one; a single picture states it in its
// header (VP9 Bitstream & Decoding Process Specification, 6.2 and annex B).
static bool shows_vp9(std::span<const std::byte> data) noexcept {
  if (data.empty()) return false;
  constexpr unsigned superframe = 0xc0;
  if ((std::to_integer<unsigned>(data.back()) & 0xe0) == superframe) return true;
  const auto first = std::to_integer<unsigned>(data[0]);
  const bool profile3 = (first & 0x30) == 0x30;
  const unsigned shift = profile3 ? 2 : 3;  // the bit of show_existing_frame: after 2 + 2 + 1 bits
  const bool shows_existing = (first >> shift & 1) != 0;
  return shows_existing || (first >> (shift - 2) & 1) != 0;
}

static bool shows_picture(const AVPacket& packet, AVCodecID codec, bool has_data) noexcept {
  if ((packet.flags & AV_PKT_FLAG_DISCARD) != 0) return false;
  const auto data = std::as_bytes(std::span(packet.data, static_cast<std::size_t>(packet.size)));
  if (!has_data) return true;
  if (codec == AV_CODEC_ID_VP8) return shows_vp8(data);
  if (codec == AV_CODEC_ID_VP9) return shows_vp9(data);
  return true;
}

static std::int64_t indexed_timestamp(std::int64_t stamp) noexcept {
  return stamp == AV_NOPTS_VALUE ? indexed_packet::no_timestamp : stamp;
}

static bool starts_decoding(const AVPacket& packet, const AVCodecParameters& stream,
                            bool has_data) {
  if ((packet.flags & AV_PKT_FLAG_KEY) == 0) return false;
  return !has_data ||
         !begins_refresh(
             stream, std::as_bytes(std::span(packet.data, static_cast<std::size_t>(packet.size))));
}

static indexed_packet index_entry(const AVPacket& packet, const AVCodecParameters& stream,
                                  bool has_data) {
  return {.pts = indexed_timestamp(packet.pts),
          .dts = indexed_timestamp(packet.dts),
          .duration = packet.duration,
          .position = packet.pos < 0 ? 0 : static_cast<std::uint64_t>(packet.pos),
          .size = static_cast<std::uint32_t>(packet.size),
          .key = starts_decoding(packet, stream, has_data),
          .shown = shows_picture(packet, stream.codec_id, has_data)};
}

static bool has_side_data(const AVPacket& packet,
                          std::span<const AVPacketSideDataType> types) noexcept {
  return std::any_of(types.begin(), types.end(), [&](auto each) {
    return av_packet_get_side_data(&packet, each, nullptr) != nullptr;
  });
}

// Whether later packets depend on the side data of this one: a palette, or new parameters.
static bool changes_decoder(const AVPacket& packet) noexcept {
  constexpr std::array types{AV_PKT_DATA_NEW_EXTRADATA, AV_PKT_DATA_PALETTE,
                             AV_PKT_DATA_PARAM_CHANGE};
  return has_side_data(packet, types);
}

// Whether a decoder needs more of a packet than its bytes.
static bool has_more_than_bytes(const AVPacket& packet) noexcept {
  constexpr std::array types{AV_PKT_DATA_ENCRYPTION_INFO, AV_PKT_DATA_MATROSKA_BLOCKADDITIONAL};
  return changes_decoder(packet) || has_side_data(packet, types);
}

// Whether the file stores the bytes of the packet as the decoder needs them.
static bool is_stored(const AVPacket& packet, std::uint64_t file_bytes) noexcept {
  if (has_more_than_bytes(packet)) return false;
  const auto end = static_cast<std::uint64_t>(packet.pos) + static_cast<std::uint64_t>(packet.size);
  return packet.pos >= 0 && end <= file_bytes;
}

// Whether the demuxer decrypts packets: then the file does not store their bytes.
static bool decrypts(const demux_options& options) noexcept {
  return options.options.find("decryption_key") != std::string_view::npos;
}

static const stream_info& chosen_stream(format_reader& reader, const video_options& options) {
  if (!options.stream) return require_stream(reader, stream_kind::video);
  const auto& chosen = reader.stream(*options.stream);
  if (chosen.kind() == stream_kind::video) return chosen;
  throw error(errc::invalid_argument, "index " + chosen.name(), "it is no video");
}

std::optional<packet_index> index_by_headers(box_headers headers, std::string_view name,
                                             const video_options& options) {
  if (decrypts(options.demuxing)) return std::nullopt;
  const auto file_bytes = headers.file_bytes();
  format_reader opened(std::make_unique<headers_input>(std::move(headers)), std::string(name),
                       options.demuxing, {}, false);
  if (!opened.is_mov() || !opened.states_parameters()) return std::nullopt;
  const auto& stream = chosen_stream(opened, options);
  opened.select(std::array{stream.index()});
  opened.context().flags |= AVFMT_FLAG_NOPARSE;
  std::vector<indexed_packet> entries;
  while (const auto next = opened.read()) {
    if (!is_stored(*next, file_bytes)) return std::nullopt;
    entries.push_back(index_entry(*next, stream.parameters(), false));
  }
  if (opened.damaged() > 0 || !packets_tell_frames(stream, entries)) return std::nullopt;
  if (may_have_times_of_decoding(stream, entries)) return std::nullopt;
  return packet_index(stream, std::move(entries), true, file_bytes);
}

// The duration of a frame that states neither time nor duration, in units of the stream's time
// base: that of the average frame rate, or one unit.
static std::int64_t usual_duration(const stream_info& stream) {
  const auto rate = stream.frame_rate();
  if (!rate || *rate <= 0) return 1;
  return std::max<std::int64_t>(1, nearest_units(rational(1) / *rate, stream.time_base()));
}

static std::int64_t following(std::int64_t time, std::int64_t duration) noexcept {
  std::int64_t next = 0;
  return __builtin_add_overflow(time, duration, &next) ? time : next;
}

// The times of the decoded frames. A frame without a time follows the previous one.
static std::vector<std::int64_t> decoded_times(const stream_info& stream,
                                               const std::vector<packet>& all,
                                               const video_options& options, std::uint64_t& damaged,
                                               const std::stop_token& stop) {
  std::vector<std::int64_t> times;
  decoder by(stream, {.damage = options.demuxing.damage, .max_pixels = options.max_pixels});
  const auto duration = usual_duration(stream);
  const auto receive_all = [&] {
    while (const auto next = by.receive())
      times.push_back(next->pts().value_or(times.empty() ? 0 : following(times.back(), duration)));
  };
  for (const auto& each : all) {
    if (stop.stop_requested() || stop_requested())
      throw error(errc::stopped, "index " + stream.name());
    by.send(each);
    receive_all();
  }
  by.finish();
  receive_all();
  damaged += by.damaged();
  return times;
}

static std::vector<packet> read_to_end(format_reader& from, int stream, packet_charges& charged) {
  constexpr std::size_t charged_bytes = std::size_t{1} << 20;
  from.select(std::array{stream});
  std::vector<packet> all;
  std::size_t uncharged = 0;
  while (auto next = from.read()) {
    uncharged += memory_of(*next);
    all.emplace_back(std::move(next));
    if (uncharged < charged_bytes) continue;
    charged.emplace_back(std::exchange(uncharged, 0));
  }
  charged.emplace_back(uncharged);
  return all;
}

// The offset of a packet's bytes in a file; empty if they are not contiguous. FFmpeg reports the
// offset of the header before them: a Matroska block or an AVI chunk.
static std::optional<std::uint64_t> find_bytes(const buffer& file,
                                               const AVPacket& packet) noexcept {
  constexpr std::uint64_t longest_header = 32;
  const auto bytes = static_cast<std::uint64_t>(packet.size);
  if (packet.pos < 0 || bytes == 0 || bytes > file.size() || has_more_than_bytes(packet))
    return std::nullopt;
  const auto first = static_cast<std::uint64_t>(packet.pos);
  const auto last = std::min(first + longest_header, file.size() - bytes);
  for (auto at = first; at <= last; ++at)
    if (std::memcmp(file.data() + at, packet.data, bytes) == 0) return at;
  return std::nullopt;
}

// Sets the positions of the entries. Returns whether all packets have one.
static bool find_positions(const buffer& file, const std::vector<packet>& all,
                           std::vector<indexed_packet>& entries) noexcept {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto at = find_bytes(file, all[i].get());
    if (!at) return false;
    entries[i].position = *at;
  }
  return true;
}

static scanned_video index_by_packets(const buffer& file, std::string_view name,
                                      const video_options& options, const std::stop_token& stop) {
  format_reader opened(std::make_unique<memory_input>(file), std::string(name), options.demuxing,
                       stop);
  const auto& stream = chosen_stream(opened, options);
  auto charged = std::make_shared<packet_charges>();
  auto all = read_to_end(opened, stream.index(), *charged);
  auto damaged = opened.damaged();
  std::vector<indexed_packet> entries;
  for (const auto& each : all)
    entries.push_back(index_entry(each.get(), stream.parameters(), true));
  const bool changes = std::any_of(all.begin(), all.end(),
                                   [](const packet& each) { return changes_decoder(each.get()); });
  // In a damaged file, some packets may have no frame.
  if (damaged == 0 && !changes && packets_tell_frames(stream, entries) &&
      (!may_have_times_of_decoding(stream, entries) || shows_packets_in_order(stream, all))) {
    const bool found = find_positions(file, all, entries);
    packet_index index(stream, std::move(entries), found, file.size());
    if (found) return {std::move(index), {}, {}};
    return {std::move(index), std::move(all), std::move(charged)};
  }
  auto times = decoded_times(stream, all, options, damaged, stop);
  return {packet_index(stream, std::move(entries), std::move(times), file.size()), std::move(all),
          std::move(charged), damaged};
}

std::optional<packet_index> without_refreshes(packet_index index, const packet_bytes& bytes_of) {
  const auto& parameters = index.stream().parameters();
  if (index.is_sequential() || !may_refresh(parameters)) return index;
  std::vector<std::size_t> refreshes;
  for (std::size_t i = 0; i < index.packets().size(); ++i)
    if (index.packets()[i].key && begins_refresh(parameters, bytes_of(i))) refreshes.push_back(i);
  if (refreshes.empty()) return index;
  if (refreshes.front() == 0) return std::nullopt;
  std::vector<indexed_packet> entries(index.packets().begin(), index.packets().end());
  for (const auto i : refreshes) entries[i].key = false;
  return packet_index(index.stream(), std::move(entries), index.has_positions(),
                      index.file_bytes());
}

packet_index require_starts(std::optional<packet_index> index, std::string_view name) {
  if (index) return std::move(*index);
  throw error(errc::unsupported, "open " + std::string(name),
              "its first picture is no key frame, although its index says so: open it in memory, "
              "without an index");
}

// The bytes of packets whose positions are known.
static packet_bytes bytes_in(const buffer& file, const packet_index& index) {
  return [file, index](std::size_t i) {
    const auto& entry = index.packets()[i];
    if (entry.position > file.size() || entry.size > file.size() - entry.position)
      throw error(errc::invalid_data, "open " + index.stream().name(),
                  "the index is of another file");
    return file.bytes().subspan(static_cast<std::size_t>(entry.position), entry.size);
  };
}

static std::optional<packet_index> index_by_headers_of(const buffer& file, std::string_view name,
                                                       const video_options& options) {
  auto headers = box_headers::of(file);
  if (!headers) return std::nullopt;
  auto index = index_by_headers(std::move(*headers), name, options);
  if (!index) return std::nullopt;
  return without_refreshes(*index, bytes_in(file, *index));
}

scanned_video scan_video(const buffer& file, std::string_view name, const video_options& options,
                         const std::stop_token& stop) {
  auto by_headers = index_by_headers_of(file, name, options);
  auto scanned = by_headers ? scanned_video{std::move(*by_headers), {}, {}}
                            : index_by_packets(file, name, options, stop);
  if (scanned.index.size() == 0)
    throw error(errc::invalid_data, "index " + scanned.index.stream().name(), "it has no frames");
  return scanned;
}

scanned_video scan_with_index(const buffer& file, std::string_view name, packet_index index,
                              const demux_options& demuxing) {
  if (index.has_positions()) {
    auto checked = require_starts(without_refreshes(index, bytes_in(file, index)), name);
    return {std::move(checked), {}, {}};
  }
  format_reader opened(std::make_unique<memory_input>(file), std::string(name), demuxing);
  auto charged = std::make_shared<packet_charges>();
  auto all = read_to_end(opened, opened.stream(index.stream().index()).index(), *charged);
  if (all.size() != index.packets().size())
    throw error(errc::invalid_data, "open " + std::string(name), "the index is of another file");
  const auto bytes_of = [&](std::size_t i) { return all[i].data(); };
  auto checked = require_starts(without_refreshes(std::move(index), bytes_of), name);
  return {std::move(checked), std::move(all), std::move(charged), opened.damaged()};
}

packet_index index_video(const buffer& file, std::string_view name, const video_options& options) {
  return scan_video(file, name, options).index;
}

}  // namespace lade::media
