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

// The texts must live until the demuxer is open.
struct demux_options {
  // FFmpeg's name of the container: "mov", "matroska". Detected by the first bytes if empty.
  std::string_view format = {};

  // Options of the container's demuxer as "key=value:key=value". Unknown ones are refused.
  std::string_view options = {};

  // Whether a file that is cut off or damaged is an error. If not, packets end where the demuxer
  // fails, and demuxer::damaged() counts it.
  damage_policy damage = damage_policy::refuse;

  // Whether times are taken to rise through the file. If not, the first window of an MPEG-TS or
  // MPEG-PS file reads all of it, and so does that of an Ogg file of joined parts.
  bool trust_times = false;
};

struct packet_stream_options {
  // What each element holds at most: packets, and seconds by decoding time, or by presentation time
  // where the file does not state that; the rest of the stream if neither is given. With a
  // duration, a packet without a time is an element of its own.
  std::optional<std::size_t> packets = {};
  std::optional<rational> duration = {};
};

// An open media file.
//
// Bytes. A file in memory is not copied, and is read on the calling thread. For other readers, each
// demuxer has one thread, which waits for the reads: FFmpeg's demuxers block. Reads run on the
// reactor; neither it nor a thread of the CPU pool ever waits. FFmpeg opens nothing by itself:
// files that refer to others, such as playlists, are refused by name.
//
// Probing. FFmpeg looks into the packets (avformat_find_stream_info) only if the container does not
// state what decoders need.
//
// Use. One task or generator at a time, from its first await until it ends; another is refused with
// error(wrong_thread). Both must end before the demuxer. Tasks require a runtime, unless the file
// is in memory.
//
// Errors name the file: error(unsupported) for an unknown container, error(invalid_argument) for
// options that do not work, error(stopped) if the caller is cancelled at any point, FFmpeg's error
// for damage, and what the reader throws. error(limit_exceeded): packets, or tables of MP4 and
// QuickTime, list many times what a file of its length can have, or an edit list more than 4,096
// edits; see docs/guides/frame-accuracy.md.
//
// A file that ends before its headers say is refused with error(invalid_data): of MP4, QuickTime,
// Matroska, WebM, AVI, WAV, CAF, FLAC and Ogg. A file in memory is refused when it is opened,
// another one when a read arrives at its end (and FLAC always then). Other containers do not state
// their length. Of MP4 and QuickTime, up to 7 bytes behind the last box are ignored, and a file
// without fragments must have all samples that its tables list. Behind a reader, only the first 16
// boxes are checked: more have files in fragments, whose cut packets are damaged.
//
// A reader that ends before its size is damage, too. One that returns more than it is asked for is
// refused with error(invalid_data).
//
// Times that go back. In MPEG-TS, MPEG-PS and Ogg files that were joined of parts, a time may be in
// several places. A window of them is refused with error(invalid_data), which says where times go
// back. If damage is tolerated, that is counted, and the window has the frames of all places. Other
// containers are checked as far as a window reads. Joined parts of Ogg with the same serial number
// are noticed in memory only.
class demuxer {
 public:
  // Opens a file in memory. Needs no runtime.
  explicit demuxer(buffer file, std::string name = "memory", const demux_options& options = {});

  // Opens a file that is read by ranges; it must not be null.
  static task<demuxer> open(std::shared_ptr<const byte_reader> from, demux_options options = {});

  // Opens a path, or an object behind a URL whose store is mounted (see store.hpp).
  static task<demuxer> open(std::string path, demux_options options = {});

  demuxer(demuxer&&) noexcept;
  demuxer& operator=(demuxer&&) noexcept;
  ~demuxer();

  const std::string& name() const noexcept;
  std::string_view format() const noexcept;  // FFmpeg's name of the container
  const std::vector<stream_info>& streams() const noexcept;
  media::metadata metadata() const;  // of the file

  // The duration of the file in seconds, as it states; empty if it does not.
  std::optional<rational> duration() const noexcept;

  // FFmpeg's choice of a stream; null if there is none of the kind.
  const stream_info* find_best(stream_kind kind) const;

  // The same; throws error(invalid_data) if there is none.
  const stream_info& best(stream_kind kind) const;

  // The packets that decoding the window of a stream needs. They begin with the last key frame
  // before it at which decoding can start exactly: none of a periodic intra refresh. Of audio, they
  // begin shortly before it where docs/guides/frame-accuracy.md lists codec and container, else with
  // the first packet of the file; all of them are in memory then. They end with the last packet that
  // has a frame in the window, or with those behind it without which the decoder does not return
  // that frame. They are all packets of a stream of which an edit list of MP4 or QuickTime shows
  // several parts. Throws error(invalid_argument) for a stream that the file does not have, or a
  // window that ends before it begins, error(unsupported) for a window of packets that have no
  // times.
  task<packets> read(int stream, time_window window = {});

  // The packets of a stream. The first call begins at the first packet of the file, and so does the
  // first one after a read() or an exception. Each other call goes on behind the last element that
  // was returned.
  async_generator<packets> stream(int stream, packet_stream_options options = {});

  // The packets of several streams in the order of the file. Each element holds packets of one
  // stream. Ends at the end of the file. A later call goes on for each of the streams that it
  // names; packets of others are passed over. Throws error(invalid_argument), at once, for no
  // streams, one that is named twice or that the file does not have, and options that do not work.
  async_generator<packets> stream(std::vector<int> streams, packet_stream_options options = {});

  // How many times damage was tolerated: an error that ended the packets, an end that is missing,
  // windows of times that go back.
  std::uint64_t damaged() const noexcept;

  // The number of bytes that were read from the file so far.
  std::uint64_t bytes_read() const noexcept;

 private:
  struct state;
  explicit demuxer(std::shared_ptr<state> of) noexcept : state_(std::move(of)) {}

  std::shared_ptr<state> state_;
};

// Reads the packets of a window from a file in memory, as demuxer::read() does. Any thread.
packets demux(const buffer& file, std::string_view name, stream_kind kind,
              const time_window& window = {}, const demux_options& options = {});

}  // namespace lade::media
