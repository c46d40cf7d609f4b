// The index of a video's packets: which frames it has, and what decoding each of them needs.

#pragma once

#include <lade/buffer.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/media/av/packet.hpp>
#include <lade/media/av/rational.hpp>
#include <lade/media/av/stream_info.hpp>
#include <lade/task.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lade::media {

// One packet of the indexed stream. Timestamps are in units of the stream's time base;
// no_timestamp if the file does not state one.
struct indexed_packet {
  static constexpr std::int64_t no_timestamp = INT64_MIN;

  std::int64_t pts = no_timestamp;
  std::int64_t dts = no_timestamp;
  std::int64_t duration = 0;
  std::uint64_t position = 0;  // offset in the file
  std::uint32_t size = 0;      // in bytes
  bool key = false;            // decoding can start here, exactly
  bool shown = true;           // false if it only serves other frames, or an edit list cuts it off

  friend bool operator==(const indexed_packet&, const indexed_packet&) = default;
};

// A range of packets, in decoding order, from a key frame on, and the frames that are wanted of it.
struct packet_range {
  std::size_t first = 0;             // number of its first packet, a key frame
  std::size_t last = 0;              // number behind its last packet
  std::vector<std::int64_t> frames;  // numbers of frames, ascending
};

// Frames are numbered from 0 in presentation order, as decoding the whole stream returns them.
//
// In most files each shown packet is one frame, and its timestamp tells it from all others. Then a
// frame is decoded from the last key frame before it. Other files, where timestamps are missing or
// repeated or go back or are those of decoding, or packets have no frame or two, are decoded from
// their beginning: is_sequential(). There, a frame that states no time follows the one before at
// the stream's mean frame rate.
//
// Immutable. Copies share. Any thread.
class packet_index {
 public:
  // `packets`: all of a stream, in decoding order, for which packets_tell_frames() is true.
  // `has_positions`: whether each one's bytes lie in one piece at its position.
  // `file_bytes`: the length of the file; 0 if unknown.
  packet_index(stream_info stream, std::vector<indexed_packet> packets, bool has_positions,
               std::uint64_t file_bytes = 0);

  // The same for a stream that must be decoded from its beginning, with the times of its frames as
  // decoding returns them.
  packet_index(stream_info stream, std::vector<indexed_packet> packets,
               std::vector<std::int64_t> frame_times, std::uint64_t file_bytes = 0);

  const stream_info& stream() const noexcept;
  std::span<const indexed_packet> packets() const noexcept;
  bool has_positions() const noexcept;
  bool is_sequential() const noexcept;
  std::uint64_t file_bytes() const noexcept;  // length of the indexed file; 0 if unknown

  // The number of frames.
  std::int64_t size() const noexcept;

  // When a frame is shown, in seconds and in units of the time base. Throws
  // error(invalid_argument) for a number that is not in [0, size()).
  rational time(std::int64_t frame) const;
  std::int64_t pts(std::int64_t frame) const;

  // The end of the last frame, in seconds.
  rational end() const;

  // The frame that is shown at a time: the last one that begins at or before it. Empty if that is
  // before the first frame, or at or behind the end of the last. Throws error(unsupported) if times
  // go back, as in files that were joined of parts.
  std::optional<std::int64_t> frame_at(const rational& time) const;

  // Whether decoding can start at a frame.
  bool is_key(std::int64_t frame) const;

  // The packets that decoding some frames needs, in decoding order, which do not overlap. `frames`
  // in any order; repeated numbers count once. Throws error(invalid_argument) for a number that is
  // not in [0, size()).
  std::vector<packet_range> ranges(std::span<const std::int64_t> frames) const;

  // The index in a format of lade's own, version 1, documented in media/av/index_format.cpp: about
  // 37 bytes for each packet. Memory of the calling stage.
  buffer serialise() const;

  // The inverse. `name`: what errors call it. Throws error(invalid_data) for anything that
  // serialise() cannot have written, error(unsupported) for another version or a codec that this
  // FFmpeg does not know. Any thread.
  static packet_index parse(const buffer& bytes, std::string_view name);

 private:
  struct state;
  std::shared_ptr<const state> state_;
};

// Whether the packets alone tell the frames of a stream: each shown packet has a timestamp that no
// other has, none comes before the first one's, which is a key frame, and the codec has one frame
// in each packet. Groups of pictures follow each other: a packet is shown after all those before
// the last key frame. Where files are joined, times may go back instead. Packets alone do not tell
// whether times that rise from packet to packet are of presentation; index_video looks into them.
bool packets_tell_frames(const stream_info& stream, std::span<const indexed_packet> packets);

// How a video is opened.
struct video_options {
  // Index of the stream in its file; FFmpeg's choice of a video stream if empty.
  std::optional<int> stream = {};

  // The container. If damage is tolerated, the frames of a file that is cut off or damaged are
  // those that decoding it tolerantly returns: it is decoded once when it is opened.
  demux_options demuxing = {};

  // The most pixels a picture may have, of files that are decoded when they are opened.
  std::int64_t max_pixels = 89'478'485;

  // Where video::open keeps the indexes of files that it reads by ranges, so that it need not index
  // them again: a directory, which is created if its parent exists. None is kept if empty.
  //
  // An index holds for the URL of an object, or the absolute path of a file without symbolic links;
  // for its length; and for its entity tag or, of an io::file, its time of modification. Others,
  // such as members of archives, are indexed each time. Indexes of another version of lade, in
  // which they hold something else, are not used. An index that is damaged is replaced; one that
  // cannot be saved is used all the same.
  std::string_view index_directory = {};
};

// Indexes a video stream of a file in memory. Of MP4 and QuickTime only the headers are looked at.
// Any thread. Throws error(invalid_data) if the file has no video, or it has no frames,
// error(invalid_argument) if the chosen stream is no video, and what demuxer throws.
packet_index index_video(const buffer& file, std::string_view name,
                         const video_options& options = {});

// Writes an index to a file: under another name first, so that a file of that path is whole, and
// on the disk. Several threads and processes may write the same path; one of their files stays.
// Blocks. Throws error naming the path and the system's reason.
void save_index(const packet_index& index, const std::string& path);

// Reads an index from a path or a URL. Requires a runtime. Throws what io::read_file and
// packet_index::parse throw.
task<packet_index> load_index(std::string path);

}  // namespace lade::media
