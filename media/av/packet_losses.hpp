// Detects lost packets of transport streams.

#pragma once

#include "av_messages.hpp"

#include <cstdint>
#include <deque>
#include <set>
#include <vector>

extern "C" {
#include <libavformat/avformat.h>
}

namespace lade::media {

// Flags the first packet after lost whole packets. FFmpeg flags only a packet that is partly lost.
// For the packets of one file in their order.
class packet_losses {
 public:
  // Takes the losses that FFmpeg reported while it read (av_messages::keep_losses()). Discarded
  // streams are ignored.
  void take(const av_messages& messages, const AVFormatContext& file);

  // Flags the packet if a loss precedes it. Call for each packet of a stream that is not discarded.
  void flag(AVPacket& next);

  // Forgets all losses. Call before a seek.
  void clear();

 private:
  bool begins_part(const lost_packets& losses, bool is_of_stream);

  struct of_stream {
    std::deque<std::int64_t> positions;  // of losses that are not flagged yet; see lost_packets
    bool last_is_flagged = false;        // the last packet was flagged as damaged
  };

  std::vector<of_stream> streams_;
  bool part_started_ = false;   // the tables of another joined recording have been read
  std::set<int> part_streams_;  // identifiers of its streams whose packets have been read
};

}  // namespace lade::media
