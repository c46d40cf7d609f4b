#include "elementary_stream.hpp"

#include <lade/error.hpp>

#include <array>
#include <cstdint>
#include <string>

extern "C" {
#include <libavcodec/codec_par.h>
#include <libavcodec/packet.h>
}

namespace lade::cuda {

// Reads bytes from the front of a range. Throws error(invalid_data) at its end.
class header_cursor {
 public:
  header_cursor(std::span<const std::byte> bytes, const media::stream_info& stream)
      : rest_(bytes), stream_(stream) {}

  bool empty() const noexcept { return rest_.empty(); }

  std::span<const std::byte> take(std::size_t count) {
    if (count > rest_.size())
      throw error(errc::invalid_data, "read NAL units of " + stream_.name(), "they are cut off");
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  std::size_t number(std::size_t count) {
    std::size_t value = 0;
    for (const auto byte : take(count)) value = value << 8 | std::to_integer<std::size_t>(byte);
    return value;
  }

 private:
  std::span<const std::byte> rest_;
  const media::stream_info& stream_;
};

elementary_stream::elementary_stream(const media::stream_info& stream) : stream_(stream) {
  const auto& parameters = stream.parameters();
  const auto size = static_cast<std::size_t>(parameters.extradata_size);
  const auto header = std::as_bytes(std::span(parameters.extradata, size));
  const bool has_version = !header.empty() && header.front() == std::byte{1};
  if (stream.codec() == "h264" && has_version)
    take_sets_of_avcc(header);
  else if (stream.codec() == "hevc" && has_version)
    take_sets_of_hvcc(header);
  else if (stream.codec() != "vp8" && stream.codec() != "vp9")
    take_headers(header);
}

void elementary_stream::take_headers(bytes header) {
  // av1C begins with four bytes; the first has a marker bit (AV1 in ISOBMFF, 2.3).
  const bool has_marker = !header.empty() && (header.front() & std::byte{0x80}) != std::byte{0};
  constexpr std::size_t av1c_bytes = 4;
  const bool is_av1c = stream_.codec() == "av1" && has_marker && header.size() >= av1c_bytes;
  const auto bare = header.subspan(is_av1c ? av1c_bytes : 0);
  headers_.assign(bare.begin(), bare.end());
}

// ISO/IEC 14496-15, 5.3.3.1.2.
void elementary_stream::take_sets_of_avcc(bytes header) {
  header_cursor rest(header, stream_);
  rest.take(4);
  length_bytes_ = (rest.number(1) & 3) + 1;
  for (const std::size_t mask : {31U, 255U}) {  // sequence sets, picture sets
    const auto count = rest.number(1) & mask;
    for (std::size_t i = 0; i < count; ++i) append_nal(rest.take(rest.number(2)));
  }
  headers_.swap(converted_);
}

// ISO/IEC 14496-15, 8.3.3.1.2.
void elementary_stream::take_sets_of_hvcc(bytes header) {
  header_cursor rest(header, stream_);
  rest.take(21);
  length_bytes_ = (rest.number(1) & 3) + 1;
  const auto arrays = rest.number(1);
  for (std::size_t i = 0; i < arrays; ++i) {
    rest.take(1);
    const auto count = rest.number(2);
    for (std::size_t k = 0; k < count; ++k) append_nal(rest.take(rest.number(2)));
  }
  headers_.swap(converted_);
}

void elementary_stream::append_nal(bytes nal) {
  constexpr std::array start_code{std::byte{0}, std::byte{0}, std::byte{0}, std::byte{1}};
  converted_.insert(converted_.end(), start_code.begin(), start_code.end());
  converted_.insert(converted_.end(), nal.begin(), nal.end());
}

void elementary_stream::append_nals(bytes packet) {
  header_cursor rest(packet, stream_);
  while (!rest.empty()) append_nal(rest.take(rest.number(length_bytes_)));
}

std::span<const std::byte> elementary_stream::convert(const media::packet& next, bool starts) {
  if (av_packet_get_side_data(&next.get(), AV_PKT_DATA_NEW_EXTRADATA, nullptr) != nullptr)
    throw error(errc::unsupported, "decode " + stream_.name() + " with NVDEC",
                "its headers change on the way");
  if (length_bytes_ == 0 && (!starts || headers_.empty())) return next.data();
  converted_.clear();
  if (starts) converted_ = headers_;
  if (length_bytes_ > 0)
    append_nals(next.data());
  else
    converted_.insert(converted_.end(), next.data().begin(), next.data().end());
  return converted_;
}

}  // namespace lade::cuda
