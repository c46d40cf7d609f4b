// The index of a video's packets: its frames, and the packets that decoding each frame needs.

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

// One packet of the indexed stream. Timestamps are in units of the stream's time base; no_timestamp
// if the file does not state them.
struct indexed_packet {
  static constexpr std::int64_t no_timestamp = INT64_MIN;

  std::int64_t pts = no_timestamp;
  std::int64_t dts = no_timestamp;
  std::int64_t duration = 0;
  std::uint64_t position = 0;  // offset in the file
  std::uint32_t size = 0;      // in bytes
  bool key = false;            // decoding can start here, exactly
  bool shown = true;           // false if only other frames use it, or an edit list cuts it off

  friend bool operator==(const indexed_packet&, const indexed_packet&) = default;
};

// A range of packets in decoding order, which begins with a key frame, and the requested frames in
// it.
struct packet_range {
  std::size_t first = 0;             // index of the first packet, a key frame
  std::size_t last = 0;              // index after the last packet
  std::vector<std::int64_t> frames;  // numbers of the requested frames, ascending
};

// Frames are numbered from 0 in presentation order, as decoding the whole stream returns them.
//
// In most files each shown packet is one frame with a unique timestamp. Then a frame is decoded
// from the last key frame before it. All other files are decoded from their beginning:
// is_sequential(). In these files, timestamps are missing, repeated, descending or decoding times,
// or packets have no frame or two. A frame without a time follows the previous one at the stream's
// mean frame rate.
//
// Immutable. Copies share. Any thread.
class packet_index {
 public:
  // `packets`: all packets of a stream, in decoding order, for which packets_tell_frames() is true.
  // `has_positions`: whether the bytes of each packet are contiguous at its position. `file_bytes`:
  // the length of the file; 0 if unknown.
  packet_index(stream_info stream, std::vector<indexed_packet> packets, bool has_positions,
               std::uint64_t file_bytes = 0);

  // The same for a stream that must be decoded from its beginning. `frame_times`: the times of its
  // frames as decoding returns them.
  packet_index(stream_info stream, std::vector<indexed_packet> packets,
               std::vector<std::int64_t> frame_times, std::uint64_t file_bytes = 0);

  const stream_info& stream() const noexcept;
  std::span<const indexed_packet> packets() const noexcept;
  bool has_positions() const noexcept;
  bool is_sequential() const noexcept;
  std::uint64_t file_bytes() const noexcept;  // length of the indexed file; 0 if unknown

  // The number of frames.
  std::int64_t size() const noexcept;

  // The presentation time of a frame, in seconds and in units of the time base. Throws
  // error(invalid_argument) for a number that is not in [0, size()).
  rational time(std::int64_t frame) const;
  std::int64_t pts(std::int64_t frame) const;

  // The end of the last frame, in seconds.
  rational end() const;

  // Returns the frame that is shown at a time: the last frame that begins at or before it. Empty
  // before the first frame, and at or after the end of the last. Throws error(unsupported) if times
  // go back, as in files of joined parts.
  std::optional<std::int64_t> frame_at(const rational& time) const;

  // Whether decoding can start at a frame.
  bool is_key(std::int64_t frame) const;

  // Returns the packets that decoding these frames needs, as disjoint ranges in decoding order.
  // `frames` may be in any order; repeated numbers count once. Throws error(invalid_argument) for a
  // number that is not in [0, size()).
  std::vector<packet_range> ranges(std::span<const std::int64_t> frames) const;

  // Returns the index in lade's own format, version 1 (media/av/index_format.cpp): about 37 bytes
  // per packet. The buffer is in memory of the calling stage.
  buffer serialise() const;

  // The inverse of serialise(). `name`: the name of the index in errors. Throws error(invalid_data)
  // for anything that serialise() cannot have written, and error(unsupported) for another version
  // or a codec that this FFmpeg does not know. Any thread.
  static packet_index parse(const buffer& bytes, std::string_view name);

 private:
  struct state;
  std::shared_ptr<const state> state_;
};

// Whether the frames of a stream can be determined from the packets alone. Conditions:
// - The codec has one frame in each packet.
// - Each shown packet has a unique timestamp. None is before that of the first packet, which is a
//   key frame.
// - Groups of pictures do not overlap: a packet is shown after all packets before the last key
//   frame. Where files are joined, times may go back instead.
//
// Packets alone do not show whether times that rise from packet to packet are presentation times.
// index_video examines the contents of packets for that.
bool packets_tell_frames(const stream_info& stream, std::span<const indexed_packet> packets);

// Options for opening a video.
struct video_options {
  // Index of the stream in its file; empty: FFmpeg's choice of a video stream.
  std::optional<int> stream = {};

  // The demuxer. If it tolerates damage, a truncated or damaged file is decoded once when it is
  // opened, and has the frames that decoding with tolerance returns.
  demux_options demuxing = {};

  // Maximum number of pixels of a picture, for files that are decoded when they are opened.
  std::int64_t max_pixels = 89'478'485;

  // The directory where video::open saves the indexes of files that it reads by ranges, for later
  // opens. It is created if its parent exists. Empty: no index is saved.
  //
  // An index is valid for the URL of an object, or the absolute path of a file without symbolic
  // links; for its length; and for its entity tag or, for an io::file, its time of modification.
  // Other readers, such as members of archives, are indexed each time. Indexes of a version of lade
  // with a different content are ignored. A damaged index is replaced. If an index cannot be saved,
  // it is used all the same.
  std::string_view index_directory = {};
};

// Indexes a video stream of a file in memory. Of MP4 and QuickTime only the headers are read. Any
// thread. Throws error(invalid_data) if the file has no video or the video has no frames. Throws
// error(invalid_argument) if the chosen stream is not a video. Otherwise throws as demuxer does.
packet_index index_video(const buffer& file, std::string_view name,
                         const video_options& options = {});

// Writes an index to a file, which appears atomically and is on the disk. Several threads and
// processes may write the same path; one of their files remains. Blocks. Throws error naming the
// path and the system's reason.
void save_index(const packet_index& index, const std::string& path);

// Reads an index from a path or a URL. Requires a runtime. Throws as io::read_file and
// packet_index::parse do.
task<packet_index> load_index(std::string path);

}  // namespace lade::media
