// Where packets of transport streams are missing.

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

// Flags the first packet behind whole packets that are missing. FFmpeg flags only a packet of which
// a part is missing. For the packets of one file in their order.
class packet_losses {
 public:
  // What FFmpeg has said while it read: av_messages::keep_losses(). Streams that are discarded do
  // not count.
  void take(const av_messages& messages, const AVFormatContext& file);

  // For each packet of a stream that is not discarded.
  void flag(AVPacket& next);

  // Before packets of another place are read.
  void clear();

 private:
  bool begins_part(const lost_packets& losses, bool is_of_stream);

  struct of_stream {
    std::deque<std::int64_t> positions;  // as av_messages has them, of those not yet passed
    bool last_is_flagged = false;        // as damaged: the last packet
  };

  std::vector<of_stream> streams_;
  bool part_started_ = false;   // of a joined recording: its tables have been read
  std::set<int> part_streams_;  // identifiers of those whose packets of it have been read
};

}  // namespace lade::media
