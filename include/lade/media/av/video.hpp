// Videos with random access to frames, by number or by time.

#pragma once

#include <lade/buffer.hpp>
#include <lade/byte_reader.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/media/av/frame.hpp>
#include <lade/media/av/packet_index.hpp>
#include <lade/task.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace lade::media {

class byte_counter;

// The amount of work of a selection of frames.
struct selection_statistics {
  std::uint64_t packets = 0;  // sent to a decoder, which may have skipped pictures
  std::uint64_t frames = 0;   // decoded frames, requested or not
  std::uint64_t ranges = 0;   // starts of decoding at a key frame
  std::uint64_t damaged = 0;  // tolerated damaged packets and frames
};

// A video file, and the index of one of its video streams.
//
// Frames are equal to those of decoding the whole stream. Only the groups of pictures with
// requested frames are decoded, each once and up to its last requested frame. Pictures that are
// neither requested nor referenced by other pictures are skipped.
//
// Immutable; copies share. Any thread. Each call decodes on the calling thread. A call by a
// function of a stage throws error(stopped) between two packets if the stage is cancelled.
class video {
 public:
  // Opens and indexes a file in memory. Throws as index_video does.
  explicit video(buffer file, std::string name = "memory", const video_options& options = {});

  // The same with an existing index of this file, for example of an earlier epoch. Throws
  // error(changed) if the length of the file differs from that in the index.
  video(buffer file, std::string name, packet_index index, const demux_options& demuxing = {});

  // Opens a file that is read by ranges. Of MP4 and QuickTime only the headers are read, on the
  // reactor; frames must be fetched before they are decoded. Other files are read into memory of
  // the caller's pool. Indexes on the CPU pool if there is a runtime. Strings of the options must
  // live until the video is open. Throws as the reader and index_video do, and error with the
  // system's reason if the index_directory cannot be created.
  static task<video> open(std::shared_ptr<const byte_reader> from, video_options options = {});

  // The same with an existing index; reads nothing if it has positions. Only the length of the file
  // is compared with the index.
  static task<video> open(std::shared_ptr<const byte_reader> from, packet_index index,
                          demux_options demuxing = {});

  // Returns the same video with the packets in memory that these frames need. Only fetched frames
  // can be decoded. Ranges of the file are read in parallel; ranges at most 16 KiB apart are
  // merged. For a file in memory, returns the video as it is.
  //
  // The headers of MP4 and QuickTime may mark pictures of H.264 and HEVC as key frames at which
  // decoding cannot start (periodic intra refresh). If the fetched packets contain one, all key
  // frames are read, and the index of the result excludes such pictures. Throws error(unsupported)
  // if the first packet of the stream is such a picture.
  task<video> fetch(std::vector<std::int64_t> numbers) const;

  const std::string& name() const noexcept;
  const packet_index& index() const noexcept;
  const stream_info& stream() const noexcept { return index().stream(); }
  std::int64_t size() const noexcept { return index().size(); }  // number of frames

  // How many times damage was tolerated while the file was opened and indexed.
  std::uint64_t damaged() const noexcept;

  // Bytes that were read from the reader to open the video and to fetch frames, for this object and
  // its copies. 0 for a video that was opened in memory.
  std::uint64_t bytes_read() const noexcept;

  // `packet_at` returns a copy of packet `number` of index().packets(), in the form that FFmpeg's
  // decoders accept, for other decoders. It throws error(invalid_argument) if the packet is not in
  // memory, and error(invalid_data) if the index is of another file. `has_packet`: whether the
  // packet is in memory.
  bool has_packet(std::size_t number) const;
  packet packet_at(std::size_t number) const;

  // Returns the frames with these numbers, in this order; a number may occur several times. Throws
  // error(invalid_argument) for a number that is not in [0, size()) or a frame that has not been
  // fetched. Throws error(invalid_data) naming the time if a frame cannot be decoded. Otherwise
  // throws as `decoder` does.
  std::vector<frame> frames(std::span<const std::int64_t> numbers,
                            const decode_options& options = {},
                            selection_statistics* counted = nullptr) const;

  // Calls `use` for each of these frames as it is decoded, in presentation order; once for each
  // frame, even if `numbers` repeats it. At most one frame is in memory. Throws error(stopped)
  // between two packets when `stop` is requested.
  void for_each_frame(std::span<const std::int64_t> numbers,
                      const std::function<void(std::int64_t number, const frame& decoded)>& use,
                      const decode_options& options = {}, selection_statistics* counted = nullptr,
                      const std::stop_token& stop = {}) const;

  // Returns the frames that are shown at these times, in seconds. Throws error(invalid_argument)
  // for a time before the first frame or after the last.
  std::vector<frame> frames_at(std::span<const rational> times, const decode_options& options = {},
                               selection_statistics* counted = nullptr) const;

 private:
  struct state;
  static task<video> open_anew(std::shared_ptr<const byte_counter> from, video_options options);
  static task<video> open_with(std::shared_ptr<const byte_counter> from, packet_index index,
                               demux_options demuxing);
  explicit video(std::shared_ptr<const state> of) noexcept : state_(std::move(of)) {}

  std::shared_ptr<const state> state_;
};

}  // namespace lade::media
