// Demuxers: media files in, packets out.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/buffer.hpp>
#include <lade/byte_reader.hpp>
#include <lade/media/av/damage.hpp>
#include <lade/media/av/packet.hpp>
#include <lade/media/av/rational.hpp>
#include <lade/media/av/stream_info.hpp>
#include <lade/task.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lade::media {

// The strings must live until the demuxer is open.
struct demux_options {
  // FFmpeg's name of the container: "mov", "matroska". If empty, detected by the first bytes.
  std::string_view format = {};

  // Options of the container's demuxer as "key=value:key=value". Unknown options are refused.
  std::string_view options = {};

  // Whether a truncated or damaged file is an error. If damage is tolerated, packets end where the
  // demuxer fails, and demuxer::damaged() counts it.
  damage_policy damage = damage_policy::refuse;

  // Whether times are assumed to rise through the file. If not, the first window of an MPEG-TS or
  // MPEG-PS file, and of an Ogg file of joined parts, reads the whole file.
  bool trust_times = false;
};

struct packet_stream_options {
  // Limits of each element: number of packets, and duration in seconds. The duration is measured by
  // decoding time, or by presentation time if the file does not state decoding times. Without
  // limits, an element is the rest of the stream. With a duration, a packet without a time is a
  // separate element.
  std::optional<std::size_t> packets = {};
  std::optional<rational> duration = {};
};

// An open media file.
//
// Bytes. A file in memory is not copied, and is read on the calling thread. For other readers, each
// demuxer has one thread that waits for the reads, because FFmpeg's demuxers block. Reads run on
// the reactor; neither the reactor nor a thread of the CPU pool ever waits. FFmpeg opens nothing:
// files that refer to others, such as playlists, are refused by name.
//
// Probing. FFmpeg reads packets for their parameters (avformat_find_stream_info) only if the
// container does not state all parameters that decoders need.
//
// Use. One task or generator at a time, from its first await until it ends; another one throws
// error(wrong_thread). Both must end before the demuxer. Tasks require a runtime, unless the file
// is in memory.
//
// Errors name the file:
// - error(unsupported): an unknown container
// - error(invalid_argument): invalid options
// - error(stopped): the caller was cancelled, at any point
// - error(limit_exceeded): packets, or tables of MP4 and QuickTime, list many times more than a
//   file of its length can have; or an edit list has more than 4,096 edits. See
//   docs/guides/frame-accuracy.md.
// - FFmpeg's error for damage, and the errors of the reader
//
// Truncation. A file that ends earlier than its headers state is refused with error(invalid_data).
// Containers: MP4, QuickTime, Matroska, WebM, AVI, WAV, CAF, FLAC and Ogg; others do not state
// their length.
// - A file in memory is refused when it is opened. Any other file, and FLAC in both cases, is
//   refused when a read reaches its end.
// - MP4 and QuickTime: up to 7 bytes after the last box are ignored. A file without fragments
//   must have all samples that its tables list.
// - MP4 and QuickTime behind a reader: only the first 16 boxes are checked. Files in fragments
//   have more boxes; their truncated packets are damaged.
//
// A reader that ends before its size is also damage. A reader that returns more bytes than
// requested is refused with error(invalid_data).
//
// Times that go back. In MPEG-TS, MPEG-PS and Ogg files of joined parts, a time may occur at
// several positions. A window of such times is refused with error(invalid_data), which states where
// times go back. If damage is tolerated, it is counted, and the window has the frames of all
// positions. Other containers are checked as far as a window reads. Joined parts of Ogg with the
// same serial number are detected in memory only.
class demuxer {
 public:
  // Opens a file in memory. Requires no runtime.
  explicit demuxer(buffer file, std::string name = "memory", const demux_options& options = {});

  // Opens a file that is read by ranges; `from` must not be null.
  static task<demuxer> open(std::shared_ptr<const byte_reader> from, demux_options options = {});

  // Opens a path, or an object behind a URL whose store is mounted (see store.hpp).
  static task<demuxer> open(std::string path, demux_options options = {});

  demuxer(demuxer&&) noexcept;
  demuxer& operator=(demuxer&&) noexcept;
  ~demuxer();

  const std::string& name() const noexcept;
  std::string_view format() const noexcept;  // FFmpeg's name of the container
  const std::vector<stream_info>& streams() const noexcept;
  media::metadata metadata() const;  // metadata of the file

  // The duration of the file in seconds, as the file states; empty if it does not.
  std::optional<rational> duration() const noexcept;

  // Returns FFmpeg's choice of a stream; null if there is none of the kind.
  const stream_info* find_best(stream_kind kind) const;

  // The same; throws error(invalid_data) if there is none.
  const stream_info& best(stream_kind kind) const;

  // Returns the packets that decoding the window of a stream needs.
  //
  // - Begin: the last key frame before the window at which decoding can start exactly, so none of
  //   a periodic intra refresh. Audio begins shortly before the window for the codecs and
  //   containers that docs/guides/frame-accuracy.md lists; otherwise with the first packet of the
  //   file, and all packets are then in memory.
  // - End: the last packet with a frame in the window, or later packets without which the decoder
  //   does not return that frame.
  // - All packets of a stream, if an edit list of MP4 or QuickTime shows several parts of it.
  //
  // Throws error(invalid_argument) for a stream that does not exist, or a window that ends before
  // it begins. Throws error(unsupported) for a window of packets that have no times.
  task<packets> read(int stream, time_window window = {});

  // Yields the packets of a stream. The first call begins at the first packet of the file, and so
  // does the first call after a read() or an exception. Every other call continues after the last
  // element that was returned.
  async_generator<packets> stream(int stream, packet_stream_options options = {});

  // Yields the packets of several streams in the order of the file. Each element has packets of one
  // stream. Ends at the end of the file. A later call continues for each of its streams; packets of
  // other streams are skipped. Throws error(invalid_argument) at once for no streams, a stream that
  // is named twice or does not exist, and invalid options.
  async_generator<packets> stream(std::vector<int> streams, packet_stream_options options = {});

  // How many times damage was tolerated: an error that ended the packets, a missing end, windows of
  // times that go back.
  std::uint64_t damaged() const noexcept;

  // The number of bytes read from the file so far.
  std::uint64_t bytes_read() const noexcept;

 private:
  struct state;
  explicit demuxer(std::shared_ptr<state> of) noexcept : state_(std::move(of)) {}

  std::shared_ptr<state> state_;
};

// Returns the packets of a window of a file in memory, as demuxer::read() does. Any thread.
packets demux(const buffer& file, std::string_view name, stream_kind kind,
              const time_window& window = {}, const demux_options& options = {});

}  // namespace lade::media
