// Builds the index of a video from its packets.

#pragma once

#include "box_headers.hpp"

#include <lade/buffer.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/media/av/packet.hpp>
#include <lade/media/av/packet_index.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

namespace lade::media {

using packet_charges = std::list<memory_charge>;
using packet_bytes = std::function<std::span<const std::byte>(std::size_t number)>;

// The index of a video stream, and its packets, unless the index has their positions.
struct scanned_video {
  packet_index index;
  std::vector<packet> packets;
  std::shared_ptr<const packet_charges> charged;  // memory of the packets, allocated by FFmpeg
  std::uint64_t damaged = 0;                      // number of times that damage was tolerated
};

// Reads all packets. Throws error(stopped) after the packet during which `stop` is requested.
scanned_video scan_video(const buffer& file, std::string_view name, const video_options& options,
                         const std::stop_token& stop = {});

// Builds the index from the headers of an MP4 file alone. Empty if that is not possible.
std::optional<packet_index> index_by_headers(box_headers headers, std::string_view name,
                                             const video_options& options);

// Removes the key frames at which decoding cannot start from an index; see begins_refresh().
// `bytes_of`: the bytes of a packet; only key frames are examined. Empty if the first packet is
// such a key frame: then the frames are unknown.
std::optional<packet_index> without_refreshes(packet_index index, const packet_bytes& bytes_of);

// Returns the index. Throws error(unsupported) naming the file if it is empty.
packet_index require_starts(std::optional<packet_index> index, std::string_view name);

// Scans a video whose index is known: reads its packets, unless the index has their positions, and
// removes the key frames at which decoding cannot start. Throws error(invalid_data) if the index is
// of another file, error(unsupported) as require_starts.
scanned_video scan_with_index(const buffer& file, std::string_view name, packet_index index,
                              const demux_options& demuxing);

}  // namespace lade::media
