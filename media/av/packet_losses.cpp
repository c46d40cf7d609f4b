#include "packet_losses.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

namespace lade::media {

// Whether a gap is the start of a joined recording: counters of tables and streams restart at 0,
// and nothing is lost.
bool packet_losses::begins_part(const lost_packets& losses, bool is_of_stream) {
  if (losses.counter != 0) return false;
  if (is_of_stream) return part_started_ && part_streams_.insert(losses.stream_id).second;
  part_started_ = true;
  part_streams_.clear();
  return true;
}

void packet_losses::take(const av_messages& messages, const AVFormatContext& file) {
  const std::span streams(file.streams, file.nb_streams);
  streams_.resize(streams.size());
  for (const auto& each : messages.losses()) {
    const auto stream = std::find_if(streams.begin(), streams.end(),
                                     [&](const auto* any) { return any->id == each.stream_id; });
    if (begins_part(each, stream != streams.end()) || stream == streams.end()) continue;
    if ((*stream)->discard != AVDISCARD_ALL)
      streams_[static_cast<std::size_t>((*stream)->index)].positions.push_back(each.position);
  }
}

void packet_losses::flag(AVPacket& next) {
  constexpr std::int64_t largest = 204;  // bytes of a packet of a transport stream
  auto& [positions, last_is_flagged] = streams_[static_cast<std::size_t>(next.stream_index)];
  const bool was_flagged = std::exchange(last_is_flagged, (next.flags & AV_PKT_FLAG_CORRUPT) != 0);
  for (; !positions.empty() && positions.front() <= next.pos + largest; positions.pop_front())
    if (!was_flagged) next.flags |= AV_PKT_FLAG_CORRUPT;
}

void packet_losses::clear() {
  streams_.clear();
  part_started_ = false;
}

}  // namespace lade::media
