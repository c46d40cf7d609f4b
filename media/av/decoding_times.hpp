// Computes decoding times for packets of containers that state only presentation times, such as
// Matroska.

#pragma once

#include <lade/media/av.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <vector>

namespace lade::media {

// A queue of the packets of one stream, in decoding order. Packet n has the (n - d)-th smallest
// presentation time as its decoding time; d is the most frames that may be reordered. So no frame
// is presented before it is decoded. The first d packets have times before the first frame. One
// thread at a time.
class decoding_times {
 public:
  // `reorders`: whether the codec can reorder frames.
  explicit decoding_times(bool reorders) noexcept : delay_(reorders ? most_reordered : 0) {}

  // Appends a packet, which must have a presentation time.
  void add(av_packet next);

  // Returns the next packet with its decoding time; null if more packets are needed first. `last`:
  // no more packets follow.
  av_packet take(bool last);

 private:
  // The most frames that codecs reorder (ITU-T H.264, A.3.1 and H.265, A.4.2).
  static constexpr std::size_t most_reordered = 16;

  void find_start();
  std::int64_t next_time();

  std::size_t delay_;
  std::size_t taken_ = 0;
  std::int64_t start_ = 0;  // the smallest presentation time
  std::int64_t step_ = 1;   // from there to the next one
  std::deque<av_packet> held_;
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> shown_;
};

}  // namespace lade::media
