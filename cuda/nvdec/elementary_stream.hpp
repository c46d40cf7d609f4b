// Converts packets of containers to the elementary stream that NVDEC's parser expects.

#pragma once

#include <lade/media/av/packet.hpp>
#include <lade/media/av/stream_info.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace lade::cuda {

// The parser expects:
// - H.264 and HEVC in Annex B format, with start codes. Containers such as MP4 store the length of
//   each NAL unit instead, and the parameter sets in their headers.
// - the sequence headers of MPEG-2 and AV1 in the stream
//
// One thread at a time.
class elementary_stream {
 public:
  // Throws error(invalid_data) if the headers are truncated.
  explicit elementary_stream(const media::stream_info& stream);

  // The bytes of a packet, after the bytes of the headers if `starts`. They are valid until the
  // next call, or until the end of the packet if that is earlier. Throws error(invalid_data) for a
  // damaged packet, error(unsupported) for one with new headers in its side data.
  std::span<const std::byte> convert(const media::packet& next, bool starts);

 private:
  using bytes = std::span<const std::byte>;

  void append_nal(bytes nal);
  void append_nals(bytes packet);
  void take_headers(bytes header);
  void take_sets_of_avcc(bytes header);
  void take_sets_of_hvcc(bytes header);

  media::stream_info stream_;
  std::size_t length_bytes_ = 0;  // size of the length before each NAL unit; 0: start codes
  std::vector<std::byte> headers_;
  std::vector<std::byte> converted_;
};

}  // namespace lade::cuda
