// Videos whose frames are accessed by number or by time.

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

// How much a selection of frames has decoded.
struct selection_statistics {
  std::uint64_t packets = 0;  // taken by a decoder, which may have skipped their pictures
  std::uint64_t frames = 0;   // decoded, wanted or not
  std::uint64_t ranges = 0;   // times that decoding started at a key frame
  std::uint64_t damaged = 0;  // packets and frames that were tolerated
};

// A video file, and the index of one of its video streams.
//
// Frames equal those that decoding the whole stream returns. Only the groups of pictures that
// have them are decoded, each once and up to its last wanted frame; pictures that no other picture
// needs and nobody wants are skipped.
//
// Immutable; copies share. Any thread: each call decodes on the calling thread, and throws
// error(stopped) between two packets if it is made by a function of a stage that is stopped.
class video {
 public:
  // Opens and indexes a file in memory. Throws what index_video throws.
  explicit video(buffer file, std::string name = "memory", const video_options& options = {});

  // The same with an index that is known: of this file, of an earlier epoch. Throws error(changed)
  // if the index is of a file of another length.
  video(buffer file, std::string name, packet_index index, const demux_options& demuxing = {});

  // Opens a file that is read by ranges. Of MP4 and QuickTime only the headers are read, on the
  // reactor; frames must be fetched before they are decoded. Other files are read into memory of
  // the caller's pool. Indexes on the CPU pool if there is a runtime. Texts of the options must
  // live until the video is open. Throws what the reader throws, too, and error with the system's
  // reason for an index_directory that cannot be created.
  static task<video> open(std::shared_ptr<const byte_reader> from, video_options options = {});

  // The same with an index that is known; reads nothing if it has positions. Only the length of the
  // file is compared with the index.
  static task<video> open(std::shared_ptr<const byte_reader> from, packet_index index,
                          demux_options demuxing = {});

  // The same video with the packets in memory that these frames need, of which only they can be
  // decoded. Ranges of the file are read in parallel, those with up to 16 KiB between them at once.
  // Of a file in memory, that is all of it.
  //
  // The headers of MP4 and QuickTime may call pictures of H.264 and HEVC key frames at which
  // decoding cannot start (periodic intra refresh). If the packets have one, all key frames are
  // read, and the index of the result has the others only. Throws error(unsupported) if the first
  // packet of the stream is such a picture.
  task<video> fetch(std::vector<std::int64_t> numbers) const;

  const std::string& name() const noexcept;
  const packet_index& index() const noexcept;
  const stream_info& stream() const noexcept { return index().stream(); }
  std::int64_t size() const noexcept { return index().size(); }  // number of frames

  // How many times damage was tolerated when the file was opened and indexed.
  std::uint64_t damaged() const noexcept;

  // How many bytes of its reader were read to open it, and to fetch frames of it and its copies. 0
  // for a video that was opened in memory.
  std::uint64_t bytes_read() const noexcept;

  // The packet of a number in index().packets(), for decoders of other libraries: a copy, as
  // FFmpeg's decoders take it. `has_packet`: whether it is in memory. Throws
  // error(invalid_argument) if it is not, error(invalid_data) if the index is of another file.
  bool has_packet(std::size_t number) const;
  packet packet_at(std::size_t number) const;

  // The frames of these numbers, in this order; a number may occur several times. Throws
  // error(invalid_argument) for a number that is not in [0, size()) or a frame that has not been
  // fetched, error(invalid_data) if a frame cannot be decoded, naming its time, and what decoder
  // throws.
  std::vector<frame> frames(std::span<const std::int64_t> numbers,
                            const decode_options& options = {},
                            selection_statistics* counted = nullptr) const;

  // The same, one after the other as they are decoded, in presentation order and each once: no more
  // than one is in memory. Throws error(stopped) between two packets when `stop` is requested.
  void for_each_frame(std::span<const std::int64_t> numbers,
                      const std::function<void(std::int64_t number, const frame& decoded)>& use,
                      const decode_options& options = {}, selection_statistics* counted = nullptr,
                      const std::stop_token& stop = {}) const;

  // The frames that are shown at these times, in seconds. Throws error(invalid_argument) for a time
  // before the first frame or behind the last.
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
