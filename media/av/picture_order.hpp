// Detects presentation times that are in fact in decoding order.
//
// Programs that copy a stream from a container without timestamps, such as AVI or raw H.264, number
// packets in coding order. Decoders return pictures in presentation order, so each gets the time of
// another one.

#pragma once

#include <lade/media/av/packet.hpp>
#include <lade/media/av/packet_index.hpp>
#include <lade/media/av/stream_info.hpp>

#include <span>
#include <vector>

namespace lade::media {

// Whether presentation times increase from packet to packet, although the codec may reorder
// pictures and the stream's parameter sets do not exclude that.
bool may_have_times_of_decoding(const stream_info& stream, std::span<const indexed_packet> packets);

// Whether the pictures of the packets are shown in packet order. False if that is unknown.
bool shows_packets_in_order(const stream_info& stream, const std::vector<packet>& packets);

}  // namespace lade::media
