// Reads the packets that are needed to decode a window of time.

#pragma once

#include "format_reader.hpp"

#include <lade/media/av/packet.hpp>
#include <lade/media/av/rational.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lade::media {

// Reads the window of one stream in steps. Nothing else may use the file meanwhile.
class window_reader {
 public:
  // Throws error(invalid_argument) if the file has no such stream, or the window ends before its
  // start.
  window_reader(format_reader& file, int stream, const time_window& window);

  // Reads packets of `bytes` more bytes. Returns false at the end of the window. Throws
  // error(invalid_data) if times decrease, unless damage is tolerated.
  bool step(std::size_t bytes);

  // Returns the packets that decoding the window needs. Throws error(unsupported) if no packet has
  // a time.
  packets take() &&;

 private:
  bool has_edges() const noexcept { return window_.begin || window_.end; }
  bool seeks() const noexcept { return window_.begin && !needs_beginning_ && !reads_all_; }
  void begin();
  void rewind_file();     // to its first packet
  void seek_to_window();  // to a packet from which the window can be decoded
  std::vector<av_packet> read_first();
  bool is_start(const AVPacket& packet) const;  // whether decoding can start there
  bool starts_late(const std::vector<av_packet>& first) const;
  bool is_behind(const AVPacket& next) const;
  bool is_leading(const AVPacket& next) const;
  bool starts_decoding(const packet& packet) const;
  std::size_t spare() const;
  void check_time(const AVPacket& next);
  void keep(av_packet next);
  void drop_needless();

  format_reader& file_;
  stream_info stream_;
  time_window window_;
  std::int64_t begin_ = 0;  // in units of the stream's time base
  std::int64_t end_ = INT64_MAX;
  bool started_ = false;
  bool needs_beginning_ = false;
  bool wavers_ = false;      // times decrease slightly
  bool reads_all_ = false;   // the window may be anywhere: times decrease, or there are edits
  bool has_times_ = false;   // a packet with a time was read
  bool holds_back_ = false;  // the decoder may need more packets before it returns a frame
  std::int64_t latest_ = INT64_MIN;  // the latest decoding time
  std::vector<packet> all_;
  std::size_t wanted_ = 0;  // packets up to the last one in the window
  std::size_t bytes_ = 0;
};

}  // namespace lade::media
