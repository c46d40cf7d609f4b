#include "parameter_sets.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace lade::media {

// The type of a NAL unit by its first byte (ITU-T H.264, 7.3.1; H.265, 7.3.1.2).
static bool is_parameter_set(AVCodecID codec, std::byte first) noexcept {
  const auto byte = std::to_integer<unsigned>(first);
  if (codec == AV_CODEC_ID_H264) return (byte & 31) == 7 || (byte & 31) == 8;
  const auto type = byte >> 1 & 63;
  return type >= 32 && type <= 34;
}

// The number of bytes of the length that precedes each NAL unit in a container, from the
// container's header of version 1 (ISO/IEC 14496-15, 5.3.3.1 and 8.3.3.1). 0 if there is no such
// header.
static std::size_t length_bytes_of(const AVCodecParameters& parameters) noexcept {
  const int at = parameters.codec_id == AV_CODEC_ID_H264 ? 4 : 21;
  if (parameters.extradata_size <= at || parameters.extradata[0] != 1) return 0;
  return (parameters.extradata[at] & 3U) + 1;
}

bool may_have_parameter_sets(const AVCodecParameters& parameters,
                             std::span<const std::byte> packet) {
  if (parameters.codec_id != AV_CODEC_ID_H264 && parameters.codec_id != AV_CODEC_ID_HEVC)
    return false;
  const auto length_bytes = length_bytes_of(parameters);
  if (length_bytes == 0) return true;
  while (packet.size() > length_bytes) {
    std::uint64_t length = 0;
    for (const auto byte : packet.first(length_bytes))
      length = length << 8 | std::to_integer<std::uint64_t>(byte);
    packet = packet.subspan(length_bytes);
    if (is_parameter_set(parameters.codec_id, packet.front())) return true;
    if (length > packet.size()) return true;  // damaged
    packet = packet.subspan(static_cast<std::size_t>(length));
  }
  return false;
}

std::span<const std::byte> after_start_code(std::span<const std::byte> bytes) {
  constexpr std::array start_code{std::byte{0}, std::byte{0}, std::byte{1}};
  const auto found = std::search(bytes.begin(), bytes.end(), start_code.begin(), start_code.end());
  const auto at = static_cast<std::size_t>(found - bytes.begin());
  return bytes.subspan(std::min(at + start_code.size(), bytes.size()));
}

// Reads the bits of a NAL unit without its emulation prevention bytes (ITU-T H.264, 7.4.1).
class nal_bits {
 public:
  explicit nal_bits(std::span<const std::byte> nal) {
    int zeros = 0;
    for (const auto byte : nal) {
      const bool guards = zeros >= 2 && byte == std::byte{3};
      zeros = byte == std::byte{0} ? zeros + 1 : 0;
      if (!guards) bytes_.push_back(byte);
    }
  }

  bool is_past_end() const noexcept { return at_ > 8 * bytes_.size(); }

  std::uint32_t bits(int count) {
    std::uint32_t value = 0;
    for (; count > 0; --count, ++at_) {
      const auto byte = at_ / 8 < bytes_.size() ? bytes_[at_ / 8] : std::byte{0};
      value = value << 1 | (std::to_integer<std::uint32_t>(byte) >> (7 - at_ % 8) & 1);
    }
    return value;
  }
  void skip(std::size_t count) { at_ += count; }

  // ue(v) (ITU-T H.264, 9.1). se(v) has the same length.
  std::uint32_t exponential() {
    int zeros = 0;
    while (zeros < 31 && !is_past_end() && bits(1) == 0) ++zeros;
    return (1U << zeros) - 1 + bits(zeros);
  }

 private:
  std::vector<std::byte> bytes_;
  std::size_t at_ = 0;
};

// Skips scaling lists (ITU-T H.264, 7.3.2.1.1.1). Returns false if one is invalid.
static bool skip_scaling_lists(nal_bits& from, int lists) {
  for (int i = 0; i < lists; ++i) {
    if (from.bits(1) == 0) continue;
    int last = 8;
    int next = 8;
    for (int k = 0; k < (i < 6 ? 16 : 64); ++k) {
      if (next != 0) {
        const auto code = from.exponential();
        const auto delta = static_cast<int>(code / 2 + code % 2) * (code % 2 == 1 ? 1 : -1);
        next = (last + delta + 256) % 256;
      }
      if (next != 0) last = next;
    }
    if (from.is_past_end()) return false;
  }
  return true;
}

// Whether pic_order_cnt_type is 2 (ITU-T H.264, 7.3.2.1.1 and 8.2.1.3).
static bool states_coding_order_h264(std::span<const std::byte> nal) {
  nal_bits from(nal.subspan(1));
  const auto profile = from.bits(8);
  from.skip(16);  // constraints, level
  from.exponential();
  constexpr std::array high{100U, 110U, 122U, 244U, 44U,  83U, 86U,
                            118U, 128U, 138U, 139U, 134U, 135U};
  if (std::find(high.begin(), high.end(), profile) != high.end()) {
    const auto chroma = from.exponential();
    if (chroma == 3) from.skip(1);
    from.exponential();  // bits of luma
    from.exponential();  // and of chroma
    from.skip(1);
    if (from.bits(1) == 1 && !skip_scaling_lists(from, chroma == 3 ? 12 : 8)) return false;
  }
  from.exponential();  // log2_max_frame_num_minus4
  return from.exponential() == 2 && !from.is_past_end();
}

// Whether sps_max_num_reorder_pics is 0 for all sub-layers (ITU-T H.265, 7.3.2.2.1 and 7.3.3).
static bool states_coding_order_hevc(std::span<const std::byte> nal) {
  nal_bits from(nal.subspan(2));
  from.skip(4);
  const auto sub_layers = from.bits(3);
  from.skip(1 + 96);  // the general profile, tier and level
  if (sub_layers > 0) return false;
  from.exponential();
  if (from.exponential() == 3) from.skip(1);  // chroma_format_idc
  from.exponential();                         // width
  from.exponential();                         // height
  if (from.bits(1) == 1)
    for (int edge = 0; edge < 4; ++edge) from.exponential();
  from.exponential();  // bits of luma
  from.exponential();  // and of chroma
  from.exponential();  // log2_max_pic_order_cnt_lsb_minus4
  from.skip(1);
  from.exponential();  // sps_max_dec_pic_buffering_minus1
  return from.exponential() == 0 && !from.is_past_end();
}

// The sequence parameter sets of avcC and hvcC (ISO/IEC 14496-15, 5.3.3.1.2 and 8.3.3.1.2).
static std::vector<std::span<const std::byte>> sequence_parameter_sets(
    const AVCodecParameters& parameters) {
  std::vector<std::span<const std::byte>> sets;
  if (length_bytes_of(parameters) == 0) return sets;
  auto rest = std::as_bytes(
      std::span(parameters.extradata, static_cast<std::size_t>(parameters.extradata_size)));
  const auto take = [&](std::size_t bytes) {
    const auto taken = rest.first(std::min(bytes, rest.size()));
    rest = rest.subspan(taken.size());
    std::size_t number = 0;
    if (bytes <= 2)
      for (const auto byte : taken) number = number << 8 | std::to_integer<std::size_t>(byte);
    return std::pair(taken, number);
  };
  const bool h264 = parameters.codec_id == AV_CODEC_ID_H264;
  take(h264 ? 5 : 22);
  const auto arrays = h264 ? std::size_t{1} : take(1).second;
  constexpr std::size_t sequence = 33;  // nal_unit_type of HEVC
  for (std::size_t i = 0; i < arrays && !rest.empty(); ++i) {
    const bool is_sequence_set = h264 || (take(1).second & 63) == sequence;
    const auto count = h264 ? take(1).second & 31 : take(2).second;
    for (std::size_t k = 0; k < count && !rest.empty(); ++k) {
      const auto set = take(take(2).second).first;
      if (is_sequence_set && set.size() > 2) sets.push_back(set);
    }
  }
  return sets;
}

bool states_coding_order(const AVCodecParameters& parameters) {
  if (parameters.codec_id != AV_CODEC_ID_H264 && parameters.codec_id != AV_CODEC_ID_HEVC)
    return false;
  const auto sets = sequence_parameter_sets(parameters);
  return !sets.empty() && std::all_of(sets.begin(), sets.end(), [&](const auto& each) {
    return parameters.codec_id == AV_CODEC_ID_H264 ? states_coding_order_h264(each)
                                                   : states_coding_order_hevc(each);
  });
}

// Removes the next NAL unit from the front of a packet. In Annex B format, both the result and the
// rest start at the unit's first byte, and the result extends to the end of the packet. Empty at
// the end, and if the packet is damaged.
static std::span<const std::byte> next_nal(std::span<const std::byte>& packet,
                                           std::size_t length_bytes) {
  if (length_bytes == 0) return packet = after_start_code(packet);
  while (packet.size() > length_bytes) {
    std::uint64_t length = 0;
    for (const auto byte : packet.first(length_bytes))
      length = length << 8 | std::to_integer<std::uint64_t>(byte);
    packet = packet.subspan(length_bytes);
    if (length > packet.size()) break;
    const auto nal = packet.first(static_cast<std::size_t>(length));
    packet = packet.subspan(nal.size());
    if (!nal.empty()) return nal;
  }
  return {};
}

static unsigned nal_type(AVCodecID codec, std::span<const std::byte> nal) {
  const auto first = std::to_integer<unsigned>(nal.front());
  return codec == AV_CODEC_ID_H264 ? first & 31 : first >> 1 & 63;
}

static constexpr unsigned idr_slice = 5;  // slices are 1 to 5 (ITU-T H.264, table 7-1)

bool begins_with_idr(const AVCodecParameters& parameters, std::span<const std::byte> packet) {
  const auto length_bytes = length_bytes_of(parameters);
  for (auto nal = next_nal(packet, length_bytes); !nal.empty();
       nal = next_nal(packet, length_bytes)) {
    const auto type = nal_type(AV_CODEC_ID_H264, nal);
    if (type >= 1 && type <= idr_slice) return type == idr_slice;
  }
  return false;
}

// The type or the size of an SEI message: a sum of bytes up to the first that is not 255 (ITU-T
// H.264, 7.3.2.3.1).
static std::size_t sei_number(nal_bits& from) {
  std::size_t sum = 0;
  for (auto byte = from.bits(8);; byte = from.bits(8)) {
    sum += byte;
    if (byte != 255) return sum;
  }
}

// Whether an SEI NAL unit has a recovery point with a recovery_frame_cnt above 0 (ITU-T H.264,
// D.1.8).
static bool signals_later_recovery(std::span<const std::byte> nal) {
  constexpr std::size_t recovery_point = 6;
  nal_bits from(nal.subspan(1));
  while (!from.is_past_end()) {
    const auto type = sei_number(from);
    const auto bytes = sei_number(from);
    if (type == recovery_point) return from.exponential() > 0 && !from.is_past_end();
    from.skip(8 * bytes);
  }
  return false;
}

// The part of a NAL unit in Annex B format before the next start code.
static std::span<const std::byte> without_next(std::span<const std::byte> nal) {
  const auto behind = after_start_code(nal);
  return nal.first(nal.size() - behind.size());
}

static bool begins_refresh_h264(std::span<const std::byte> packet, std::size_t length_bytes) {
  constexpr unsigned sei = 6;
  bool recovers_later = false;
  for (auto nal = next_nal(packet, length_bytes); !nal.empty();
       nal = next_nal(packet, length_bytes)) {
    const auto type = nal_type(AV_CODEC_ID_H264, nal);
    if (type >= 1 && type <= idr_slice) return recovers_later && type != idr_slice;
    if (type == sei)
      recovers_later =
          recovers_later || signals_later_recovery(length_bytes > 0 ? nal : without_next(nal));
  }
  return false;
}

// Pictures are NAL units of types below 32; types 16 to 23 are intra random access points (ITU-T
// H.265, table 7-1).
static bool begins_refresh_hevc(std::span<const std::byte> packet, std::size_t length_bytes) {
  for (auto nal = next_nal(packet, length_bytes); !nal.empty();
       nal = next_nal(packet, length_bytes))
    if (const auto type = nal_type(AV_CODEC_ID_HEVC, nal); type < 32) return type < 16 || type > 23;
  return false;
}

bool may_refresh(const AVCodecParameters& parameters) noexcept {
  return parameters.codec_id == AV_CODEC_ID_H264 || parameters.codec_id == AV_CODEC_ID_HEVC;
}

bool begins_refresh(const AVCodecParameters& parameters, std::span<const std::byte> packet) {
  if (parameters.codec_id == AV_CODEC_ID_H264)
    return begins_refresh_h264(packet, length_bytes_of(parameters));
  if (parameters.codec_id == AV_CODEC_ID_HEVC)
    return begins_refresh_hevc(packet, length_bytes_of(parameters));
  return false;
}

}  // namespace lade::media
