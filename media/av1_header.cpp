#include "av1_header.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>

namespace lade::media {

// Reads numbers of any number of bits, high bit first (4.10.2). Reads zeros past the end.
class av1_bits {
 public:
  explicit av1_bits(support::byte_view bytes) : bytes_(bytes) {}

  std::uint32_t number(unsigned bits) noexcept {
    std::uint32_t value = 0;
    for (; bits > 0; --bits, ++at_) value = value << 1 | (bytes_[at_ / 8] >> (7 - at_ % 8) & 1U);
    return value;
  }
  bool flag() noexcept { return number(1) != 0; }
  void skip(unsigned bits) noexcept { at_ += bits; }

  // uvlc() (4.10.3)
  void skip_uvlc() noexcept {
    unsigned zeros = 0;
    while (zeros < 32 && !flag()) ++zeros;
    if (zeros < 32) skip(zeros);
  }

  bool past_the_end() const noexcept { return at_ > 8 * bytes_.size(); }

 private:
  support::byte_view bytes_;
  std::size_t at_ = 0;
};

// Skips timing_info (5.5.3) and decoder_model_info (5.5.4). Returns the bits of an operating
// point's delays; 0 if there is no decoder model.
static unsigned skip_av1_timing(av1_bits& in) noexcept {
  in.skip(32 + 32);                // num_units_in_display_tick, time_scale
  if (in.flag()) in.skip_uvlc();   // num_ticks_per_picture_minus_1
  if (!in.flag()) return 0;        // decoder_model_info_present_flag
  const auto bits = in.number(5);  // buffer_delay_length_minus_1
  in.skip(32 + 5 + 5);             // num_units_in_decoding_tick, two more lengths
  return bits + 1;
}

static void skip_av1_operating_points(av1_bits& in) noexcept {
  const unsigned delay_bits = in.flag() ? skip_av1_timing(in) : 0;
  const bool display_delays = in.flag();
  for (auto left = in.number(5) + 1; left > 0; --left) {
    in.skip(12);                                                   // operating_point_idc
    if (in.number(5) > 7) in.skip(1);                              // seq_tier
    if (delay_bits > 0 && in.flag()) in.skip(2 * delay_bits + 1);  // 5.5.5
    if (display_delays && in.flag()) in.skip(4);                   // initial_display_delay
  }
}

av1_size av1_sequence_size(support::byte_view payload) noexcept {
  av1_bits in(payload);
  in.skip(3 + 1);  // seq_profile, still_picture
  if (in.flag())   // reduced_still_picture_header
    in.skip(5);    // seq_level_idx
  else
    skip_av1_operating_points(in);
  const auto width_bits = in.number(4) + 1;
  const auto height_bits = in.number(4) + 1;
  const auto width = in.number(width_bits) + 1;
  const auto height = in.number(height_bits) + 1;
  return in.past_the_end() ? av1_size{} : av1_size{width, height};
}

void av1_sizes::add(support::byte_view part) noexcept {
  for (std::size_t at = 0; at < part.size() && obus_left_ > 0;) {
    if (in_payload_)
      at += add_to_payload(part.from(at));
    else
      add_to_header(part[at++]);
  }
}

void av1_sizes::end_sample() noexcept {
  if (in_payload_) end_payload();
  begin_header();
}

// leb128() (4.10.5): groups of seven bits, the lowest group first.
static std::uint64_t av1_leb128(std::span<const std::byte> bytes) noexcept {
  std::uint64_t value = 0;
  for (auto i = bytes.size(); i-- > 0;)
    value = value << 7 | (std::to_integer<std::uint64_t>(bytes[i]) & 0x7f);
  return value;
}

// obu_header and obu_size (5.3.1, 5.3.2). An OBU without a size extends to the end of its sample.
// Zeros between OBUs are skipped, as in libaom.
void av1_sizes::add_to_header(std::uint8_t byte) noexcept {
  constexpr std::size_t longest_size = 8;
  kept_[kept_bytes_++] = std::byte{byte};
  first_ = std::to_integer<std::uint8_t>(kept_[0]);
  const bool has_extension = (first_ & 4) != 0;
  const bool has_size = (first_ & 2) != 0;
  const std::size_t before_size = has_extension ? 2 : 1;
  if (kept_bytes_ < before_size) return;
  if (first_ == 0) return begin_payload(0);
  if (!has_size) return begin_payload(std::numeric_limits<std::uint64_t>::max());
  const bool goes_on = byte >= 0x80 && kept_bytes_ < before_size + longest_size;
  if (kept_bytes_ == before_size || goes_on) return;
  begin_payload(av1_leb128(std::span(kept_).first(kept_bytes_).subspan(before_size)));
}

std::size_t av1_sizes::add_to_payload(support::byte_view part) noexcept {
  const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(part.size(), payload_left_));
  if (is_sequence_header()) {
    const auto more = std::min(bytes, kept_.size() - kept_bytes_);
    std::memcpy(kept_.data() + kept_bytes_, part.data(), more);
    kept_bytes_ += more;
  }
  payload_left_ -= bytes;
  if (payload_left_ == 0) end_payload();
  return bytes;
}

bool av1_sizes::is_sequence_header() const noexcept { return (first_ >> 3 & 15) == 1; }

void av1_sizes::begin_header() noexcept {
  in_payload_ = false;
  kept_bytes_ = 0;
}

void av1_sizes::begin_payload(std::uint64_t size) noexcept {
  --obus_left_;
  kept_bytes_ = 0;
  payload_left_ = size;
  in_payload_ = size > 0;
}

void av1_sizes::end_payload() noexcept {
  if (is_sequence_header()) {
    const auto size = av1_sequence_size(support::byte_view(kept_).part(0, kept_bytes_));
    if (size.pixels() > largest_.pixels()) largest_ = size;
  }
  begin_header();
}

}  // namespace lade::media
