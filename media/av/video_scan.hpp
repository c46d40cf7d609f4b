// Indexing a video by its packets.

#pragma once

#include "box_headers.hpp"

#include <lade/buffer.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/media/av/packet.hpp>
#include <lade/media/av/packet_index.hpp>

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <vector>

namespace lade::media {

using packet_charges = std::list<memory_charge>;

// The index of a video stream of a file, and all of its packets unless the index has their
// positions.
struct scanned_video {
  packet_index index;
  std::vector<packet> packets;
  std::shared_ptr<const packet_charges> charged;  // for the packets, which FFmpeg allocates
  std::uint64_t damaged = 0;                      // times that damage was tolerated
};

// Throws error(stopped) between two packets when `stop` is requested.
scanned_video scan_video(const buffer& file, std::string_view name, const video_options& options,
                         const std::stop_token& stop = {});

// The index by the headers of a file of boxes alone; empty if that is not possible.
std::optional<packet_index> index_by_headers(box_headers headers, std::string_view name,
                                             const video_options& options);

// The same video with all of its packets, unless the index has their positions.
scanned_video scan_with_index(const buffer& file, std::string_view name, packet_index index,
                              const demux_options& demuxing);

}  // namespace lade::media
