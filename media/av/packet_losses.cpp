#include "packet_losses.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

namespace lade::media {

// Where recordings are joined, counters of tables and streams begin anew, and nothing is missing.
bool packet_losses::begins_part(const lost_packets& losses, bool is_of_stream) {
  if (losses.counter != 0) return false;
  if (is_of_stream) return part_begins_ && part_streams_.insert(losses.stream_id).second;
  part_begins_ = true;
  part_streams_.clear();
  return true;
}

void packet_losses::take(const av_messages& messages, const AVFormatContext& file) {
  const std::span streams(file.streams, file.nb_streams);
  streams_.resize(streams.size());
  for (const auto& each : messages.losses()) {
    const auto of = std::find_if(streams.begin(), streams.end(),
                                 [&](const auto* any) { return any->id == each.stream_id; });
    if (begins_part(each, of != streams.end()) || of == streams.end()) continue;
    if ((*of)->discard != AVDISCARD_ALL)
      streams_[static_cast<std::size_t>((*of)->index)].positions.push_back(each.position);
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
  part_begins_ = false;
}

}  // namespace lade::media
