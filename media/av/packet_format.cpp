// The format of a file of packets, version 1:
//
//   "LADEPKTS", u32 version
//   u32         major version of libavcodec, which numbers the kinds of side data
//   stream      see stored_stream.hpp
//   2 fractions begin and end of the window, each after a byte: 1 if there is one, else 0
//   u64         number of packets, and for each:
//     i64 pts, i64 dts (-2^63 if unknown), i64 duration, i64 position (-1 if unknown), u32 flags,
//     u64 length, bytes; u8 number of side data, and for each: u16 kind, u64 length, bytes. Kinds
//     whose bytes FFmpeg trusts are not written, and refused when they are parsed.
//   u32         CRC-32C of everything before
//
// All numbers are little-endian.

#include "stored_stream.hpp"

#include <lade/media/av/packet.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/mastering_display_metadata.h>
#include <libavutil/replaygain.h>
#include <libavutil/spherical.h>
#include <libavutil/stereo3d.h>
}

namespace lade::media {

static constexpr std::string_view packets_signature = "LADEPKTS";
static constexpr std::uint32_t packets_version = 1;
static constexpr std::size_t least_packet_bytes = 4 * 8 + 4 + 8 + 1;

static std::span<const std::byte> stored_bytes(const std::uint8_t* data, std::size_t bytes) {
  return std::as_bytes(std::span(data, bytes));
}

// The flags that are stored. AV_PKT_FLAG_TRUSTED is not: with it, decoders follow pointers in the
// packet.
static constexpr std::uint32_t stored_flags =
    AV_PKT_FLAG_KEY | AV_PKT_FLAG_CORRUPT | AV_PKT_FLAG_DISCARD | AV_PKT_FLAG_DISPOSABLE;

// The size of side data that are a structure or have a fixed layout; empty for others.
static std::optional<std::size_t> fixed_side_data_bytes(AVPacketSideDataType type) noexcept {
  switch (type) {
    case AV_PKT_DATA_PALETTE: return AVPALETTE_SIZE;
    case AV_PKT_DATA_REPLAYGAIN: return sizeof(AVReplayGain);
    case AV_PKT_DATA_DISPLAYMATRIX: return 9 * sizeof(std::int32_t);
    case AV_PKT_DATA_AUDIO_SERVICE_TYPE: return sizeof(AVAudioServiceType);
    case AV_PKT_DATA_FALLBACK_TRACK: return sizeof(int);
    case AV_PKT_DATA_SKIP_SAMPLES: return 10;
    case AV_PKT_DATA_MASTERING_DISPLAY_METADATA: return sizeof(AVMasteringDisplayMetadata);
    case AV_PKT_DATA_CONTENT_LIGHT_LEVEL: return sizeof(AVContentLightMetadata);
    case AV_PKT_DATA_STEREO3D: return sizeof(AVStereo3D);
    case AV_PKT_DATA_SPHERICAL: return sizeof(AVSphericalMapping);
    case AV_PKT_DATA_CPB_PROPERTIES: return sizeof(AVCPBProperties);
    case AV_PKT_DATA_PRFT: return sizeof(AVProducerReferenceTime);
    case AV_PKT_DATA_S12M_TIMECODE: return 4 * sizeof(std::uint32_t);
    case AV_PKT_DATA_JP_DUALMONO:
    case AV_PKT_DATA_AFD: return 1;
    default: return std::nullopt;
  }
}

// Side data that are stored: bytes whose readers check their length, and structures of a known
// size. Other structures contain offsets and lengths that FFmpeg trusts.
static bool is_stored_side_data(AVPacketSideDataType type) noexcept {
  switch (type) {
    case AV_PKT_DATA_NEW_EXTRADATA:
    case AV_PKT_DATA_PARAM_CHANGE:
    case AV_PKT_DATA_STRINGS_METADATA:
    case AV_PKT_DATA_METADATA_UPDATE:
    case AV_PKT_DATA_MATROSKA_BLOCKADDITIONAL:
    case AV_PKT_DATA_MPEGTS_STREAM_ID:
    case AV_PKT_DATA_A53_CC:
    case AV_PKT_DATA_ICC_PROFILE: return true;
    default: return fixed_side_data_bytes(type).has_value();
  }
}

static void store_packet(stored_writer& to, const AVPacket& packet) {
  to.number(packet.pts);
  to.number(packet.dts);
  to.number(packet.duration);
  to.number(packet.pos);
  to.number(static_cast<std::uint32_t>(packet.flags) & stored_flags);
  to.bytes(stored_bytes(packet.data, static_cast<std::size_t>(packet.size)));
  const std::span side_data(packet.side_data, static_cast<std::size_t>(packet.side_data_elems));
  const auto is_stored = [](const auto& each) { return is_stored_side_data(each.type); };
  to.number(static_cast<std::uint8_t>(std::ranges::count_if(side_data, is_stored)));
  for (const auto& each : side_data) {
    if (!is_stored(each)) continue;
    to.number(static_cast<std::uint16_t>(each.type));
    to.bytes(stored_bytes(each.data, each.size));
  }
}

buffer packets::serialise() const {
  stored_writer to;
  to.number(static_cast<std::uint32_t>(LIBAVCODEC_VERSION_MAJOR));
  store_stream(to, stream_);
  to.fraction(window_.begin);
  to.fraction(window_.end);
  to.number(static_cast<std::uint64_t>(size()));
  for (const auto& each : all_) store_packet(to, each.get());
  return to.sealed(packets_signature, packets_version);
}

static void load_side_data(stored_reader& from, AVPacket& to, bool known) {
  const auto count = from.number<std::uint8_t>();
  if (count > 0 && !known)
    throw error(errc::unsupported, from.doing(), "its side data is of another FFmpeg");
  for (int i = 0; i < count; ++i) {
    const auto type =
        static_cast<AVPacketSideDataType>(from.number<std::uint16_t>(0, AV_PKT_DATA_NB - 1));
    const auto bytes = from.bytes();
    if (!is_stored_side_data(type)) from.refuse("a packet has side data that is not stored");
    if (const auto size = fixed_side_data_bytes(type); size && bytes.size() != *size)
      from.refuse("side data has another size than its kind");
    auto* memory = check_av(av_packet_new_side_data(&to, type, bytes.size()));
    if (!bytes.empty()) std::memcpy(memory, bytes.data(), bytes.size());
  }
}

static packet load_packet(stored_reader& from, int stream, bool knows_side_data) {
  av_packet made(check_av(av_packet_alloc()));
  const auto pts = from.number<std::int64_t>();
  const auto dts = from.number<std::int64_t>();
  const auto duration = from.number<std::int64_t>();
  const auto position = from.number<std::int64_t>(-1, INT64_MAX);
  const auto flags = from.number<std::uint32_t>();
  if ((flags & ~stored_flags) != 0) from.refuse("a packet has unknown flags");
  const auto bytes = from.bytes();
  if (bytes.size() > static_cast<std::size_t>(INT32_MAX - AV_INPUT_BUFFER_PADDING_SIZE))
    from.refuse("a packet has more than 2 GiB");
  check_av(av_new_packet(made.get(), static_cast<int>(bytes.size())), "allocate a packet");
  if (!bytes.empty()) std::memcpy(made->data, bytes.data(), bytes.size());
  made->pts = pts;
  made->dts = dts;
  made->duration = duration;
  made->pos = position;
  made->flags = static_cast<int>(flags);
  made->stream_index = stream;
  load_side_data(from, *made, knows_side_data);
  return packet(std::move(made));
}

packets packets::parse(const buffer& bytes, std::string_view name) {
  stored_reader from(bytes.bytes(), packets_signature, packets_version,
                     "parse packets in " + std::string(name));
  const bool knows_side_data = from.number<std::uint32_t>() == LIBAVCODEC_VERSION_MAJOR;
  auto stream = load_stream(from);
  time_window window;
  window.begin = from.optional_fraction();
  window.end = from.optional_fraction();
  const auto count = from.count(least_packet_bytes);
  memory_charge charged(bytes.size() + count * packet_bytes);
  std::vector<packet> all;
  all.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    all.push_back(load_packet(from, stream.index(), knows_side_data));
  from.end();
  packets result(std::move(stream), std::move(all), window);
  result.attach(std::move(charged));
  return result;
}

}  // namespace lade::media
