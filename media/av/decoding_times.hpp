// Decoding times for packets of containers that state only when frames are shown, as Matroska does.

#pragma once

#include <lade/media/av.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <vector>

namespace lade::media {

// Packets of one stream in decoding order. A packet's decoding time is the n-th smallest of the
// times shown, n being its number less the most frames that may be reordered: none then is shown
// before it is decoded. So the first packets have times before the first frame. One thread at a
// time.
class decoding_times {
 public:
  // `reorders`: whether the codec can show frames in another order than that of decoding.
  explicit decoding_times(bool reorders) noexcept : delay_(reorders ? most_reordered : 0) {}

  // Appends a packet that states when it is shown.
  void add(av_packet next);

  // The next packet with its decoding time; null until more packets are there, unless these are the
  // `last` ones.
  av_packet take(bool last);

 private:
  // The most frames that decoders hold back (ITU-T H.264, A.3.1 and H.265, A.4.2).
  static constexpr std::size_t most_reordered = 16;

  void find_start();
  std::int64_t next_time();

  std::size_t delay_;
  std::size_t taken_ = 0;
  std::int64_t start_ = 0;  // the smallest time shown
  std::int64_t step_ = 1;   // from there to the next
  std::deque<av_packet> held_;
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> shown_;
};

}  // namespace lade::media
