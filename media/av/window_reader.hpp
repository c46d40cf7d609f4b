// Finds the packets that decoding a window of time needs.

#pragma once

#include "format_reader.hpp"

#include <lade/media/av/packet.hpp>
#include <lade/media/av/rational.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace lade::media {

// How long before a window of audio decoding must begin, in units of the stream's time base.
std::int64_t lead_in_of(const stream_info& stream);

// Reads the window of one stream in steps. Uses the file alone until it is done.
class window_reader {
 public:
  // Throws error(invalid_argument) for a stream that the file does not have, or a window that ends
  // before it begins.
  window_reader(format_reader& file, int stream, const time_window& window);

  // Reads packets until they have `bytes` bytes more. Returns false at the end of the window.
  bool step(std::size_t bytes);

  // The packets that were read, without those behind the last one of the window.
  packets take() &&;

 private:
  void go_to_begin();
  bool starts_late(const AVPacket& first) const;
  bool is_behind(const AVPacket& next) const;
  bool is_leading(const AVPacket& next) const;
  void keep(av_packet next);
  void drop_needless();

  format_reader& file_;
  stream_info stream_;
  time_window window_;
  std::int64_t begin_ = 0;  // in units of the stream's time base
  std::int64_t end_ = INT64_MAX;
  bool started_ = false;
  std::vector<packet> all_;
  std::size_t wanted_ = 0;  // packets up to the last one in the window
  std::size_t bytes_ = 0;
};

}  // namespace lade::media
