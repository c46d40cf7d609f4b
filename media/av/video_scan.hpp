// Indexing a video by its packets.

#pragma once

#include "box_headers.hpp"

#include <lade/buffer.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/media/av/packet.hpp>
#include <lade/media/av/packet_index.hpp>

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace lade::media {

// The index of the best video stream of a file, and all of its packets unless the index has their
// positions.
struct scanned_video {
  packet_index index;
  std::vector<packet> packets;
  std::shared_ptr<const memory_charge> charged;  // for the packets, which FFmpeg allocates
};

scanned_video scan_video(const buffer& file, std::string_view name);

// The index by the headers of a file of boxes alone; empty if that is not possible.
std::optional<packet_index> index_by_headers(box_headers headers, std::string_view name);

// All packets of the stream.
std::vector<packet> read_all_packets(const buffer& file, std::string_view name, int stream);

}  // namespace lade::media
