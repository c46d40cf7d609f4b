// Whether timestamps tell the order of pictures, or are only those of decoding.
//
// Programs that copy a stream from a container without timestamps, such as AVI or raw H.264, number
// packets in the order in which they are coded. Decoders return pictures in the order in which they
// are shown, each with a time that is another's.

#pragma once

#include <lade/media/av/packet.hpp>
#include <lade/media/av/packet_index.hpp>
#include <lade/media/av/stream_info.hpp>

#include <span>
#include <vector>

namespace lade::media {

// Whether presentation times rise from packet to packet although the codec may show pictures in
// another order, and the stream's parameter sets do not rule that out.
bool may_have_times_of_decoding(const stream_info& stream, std::span<const indexed_packet> packets);

// Whether the pictures of the packets are shown in the order of the packets. False if that cannot
// be told.
bool shows_packets_in_order(const stream_info& stream, const std::vector<packet>& packets);

}  // namespace lade::media
