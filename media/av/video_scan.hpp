// Indexing a video by its packets.

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

// The same index without the key frames at which decoding cannot start; see begins_refresh().
// `bytes_of`: those of a packet, of which only key frames are looked at. Empty if the stream begins
// with such a packet: then packets do not tell its frames.
std::optional<packet_index> without_refreshes(packet_index index, const packet_bytes& bytes_of);

// Throws error(unsupported) for an empty one, naming the file.
packet_index require_starts(std::optional<packet_index> index, std::string_view name);

// The same video with all of its packets, unless the index has their positions. Key frames at which
// decoding cannot start are none in the index that is returned. Throws error(invalid_data) for an
// index of another file, error(unsupported) as require_starts does.
scanned_video scan_with_index(const buffer& file, std::string_view name, packet_index index,
                              const demux_options& demuxing);

}  // namespace lade::media
