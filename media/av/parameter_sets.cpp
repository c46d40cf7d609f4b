#include "parameter_sets.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace lade::media {

// The type of a NAL unit by its first byte (ITU-T H.264, 7.3.1; H.265, 7.3.1.2).
static bool is_parameter_set(AVCodecID codec, std::byte first) noexcept {
  const auto byte = std::to_integer<unsigned>(first);
  if (codec == AV_CODEC_ID_H264) return (byte & 31) == 7 || (byte & 31) == 8;
  const auto type = byte >> 1 & 63;
  return type >= 32 && type <= 34;
}

// Containers store the length of a NAL unit in front of it; their header tells in how many bytes,
// and has version 1 (ISO/IEC 14496-15, 5.3.3.1 and 8.3.3.1). 0 if there is no such header.
static std::size_t length_bytes_of(const AVCodecParameters& of) noexcept {
  const int at = of.codec_id == AV_CODEC_ID_H264 ? 4 : 21;
  if (of.extradata_size <= at || of.extradata[0] != 1) return 0;
  return (of.extradata[at] & 3U) + 1;
}

bool may_have_parameter_sets(const AVCodecParameters& of, std::span<const std::byte> packet) {
  if (of.codec_id != AV_CODEC_ID_H264 && of.codec_id != AV_CODEC_ID_HEVC) return false;
  const auto length_bytes = length_bytes_of(of);
  if (length_bytes == 0) return true;
  while (packet.size() > length_bytes) {
    std::uint64_t length = 0;
    for (const auto byte : packet.first(length_bytes))
      length = length << 8 | std::to_integer<std::uint64_t>(byte);
    packet = packet.subspan(length_bytes);
    if (is_parameter_set(of.codec_id, packet.front())) return true;
    if (length > packet.size()) return true;  // damaged
    packet = packet.subspan(static_cast<std::size_t>(length));
  }
  return false;
}

// In Annex B format, a start code is in front of each NAL unit (ITU-T H.264, B.1).
static std::span<const std::byte> behind_start_code(std::span<const std::byte> bytes) {
  constexpr std::array start_code{std::byte{0}, std::byte{0}, std::byte{1}};
  const auto found = std::search(bytes.begin(), bytes.end(), start_code.begin(), start_code.end());
  const auto at = static_cast<std::size_t>(found - bytes.begin());
  return bytes.subspan(std::min(at + start_code.size(), bytes.size()));
}

bool begins_with_idr(const AVCodecParameters& of, std::span<const std::byte> packet) {
  constexpr unsigned idr = 5;  // of slices, whose types are 1 to 5 (ITU-T H.264, table 7-1)
  const auto length_bytes = length_bytes_of(of);
  while (packet.size() > length_bytes) {
    std::uint64_t length = 0;
    for (const auto byte : packet.first(length_bytes))
      length = length << 8 | std::to_integer<std::uint64_t>(byte);
    packet = length_bytes > 0 ? packet.subspan(length_bytes) : behind_start_code(packet);
    if (packet.empty() || length > packet.size()) return false;
    const auto type = std::to_integer<unsigned>(packet.front()) & 31;
    if (type >= 1 && type <= idr) return type == idr;
    packet = packet.subspan(static_cast<std::size_t>(length));
  }
  return false;
}

}  // namespace lade::media
