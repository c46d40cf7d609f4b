// Packets of containers as NVDEC's parser takes them.

#pragma once

#include <lade/media/av/packet.hpp>
#include <lade/media/av/stream_info.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace lade::cuda {

// The parser takes H.264 and HEVC in Annex B format: containers such as MP4 store the length of a
// NAL unit in front of it instead, and parameter sets in their headers. It also takes sequence
// headers of MPEG-2 and AV1 only as part of the stream.
//
// One thread at a time.
class elementary_stream {
 public:
  // Throws error(invalid_data) for headers that are cut off.
  explicit elementary_stream(const media::stream_info& stream);

  // The bytes of a packet, with those of the headers in front if `starts`. They are valid until the
  // next call, or as long as the packet. Throws error(invalid_data) for a packet that is damaged,
  // error(unsupported) for one that brings headers of its own beside its bytes.
  std::span<const std::byte> convert(const media::packet& next, bool starts);

 private:
  using bytes = std::span<const std::byte>;

  void append_nal(bytes nal);
  void append_nals(bytes packet);
  void take_headers(bytes header);
  void take_sets_of_avcc(bytes header);
  void take_sets_of_hvcc(bytes header);

  media::stream_info stream_;
  std::size_t length_bytes_ = 0;  // in front of each NAL unit; 0: there are start codes
  std::vector<std::byte> headers_;
  std::vector<std::byte> converted_;
};

}  // namespace lade::cuda
