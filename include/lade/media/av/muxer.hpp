// Muxers: packets in, media files out.

#pragma once

#include <lade/buffer.hpp>
#include <lade/media/av/encoder.hpp>
#include <lade/media/av/packet.hpp>
#include <lade/media/av/stream_info.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace lade::media {

struct mux_options {
  // FFmpeg's name of the container: "mp4", "matroska". If empty, determined by the extension of the
  // file.
  std::string_view format = {};

  // Options of the container's muxer as "key=value:key=value": "movflags=+faststart". Unknown
  // options are refused.
  std::string_view options = {};
};

// A media file that is being written.
//
// Name. A file is written as its name with ".part" appended. finish() renames it to its name, and
// replaces an existing file. Without finish(), the ".part" file remains, and the next muxer of the
// same file overwrites it. For a symbolic link, this applies to the target of the link. The new
// file has the permissions of the old one, but not its owner and other names. Devices and pipes are
// written directly; writing to a pipe without a reader is the error EPIPE, without its signal.
//
// Bytes are written by lade through a descriptor; FFmpeg opens nothing. Formats that consist of
// several files are refused by name.
//
// Timestamps are converted from the stream's time base to the container's. The conversion is exact
// if the container can express them, as MP4 can. Otherwise they are rounded to its nearest unit: a
// millisecond in Matroska.
//
// Use. One thread at a time. Calls block on the disk, and must not be made on a reactor. After any
// exception of write() or finish(), the file cannot be finished: each further call throws
// error(invalid_argument).
//
// Codecs. A codec that FFmpeg writes into a container but does not recognise when it reads the file
// is refused: VP9 in MPEG-TS, AAC in WAV, any other codec in a format of one codec. Formats without
// packets are also refused, such as "md5" and "ffmetadata".
//
// Errors name the file: error(unsupported) for an unknown container, and for a codec that the
// container does not hold, which FFmpeg may report only at a packet; error(invalid_argument) for
// invalid options; the system's error for a disk that is full or fails, at a packet, at the end, or
// when the file is closed.
class muxer {
 public:
  // Begins a file. Throws the system's error if it cannot be created, and error(invalid_argument)
  // if the path is empty or another muxer writes the file.
  explicit muxer(std::string path, const mux_options& options = {});

  // Begins a file in memory of the calling stage. `format` is required.
  static muxer in_memory(const mux_options& options);

  muxer(muxer&&) noexcept;
  muxer& operator=(muxer&&) noexcept;
  ~muxer();

  // Adds a stream with the parameters, metadata and orientation of a stream of an encoder or of
  // another file. Call it before the first packet. Returns the index of the stream in this file.
  // Throws error(unsupported), naming encoder and field, if neither the encoder's stream nor the
  // file states the colours and decoders would assume others.
  int add(const stream_info& stream);

  // Replaces the metadata of the file or of a stream, before the first packet. FFmpeg omits keys
  // that the container does not have. Throws error(invalid_argument) for a NUL in a key or value.
  void set_metadata(const metadata& of_file);
  void set_metadata(int stream, const metadata& of_stream);

  // Sets the display orientation of a video, before the first packet. Throws
  // error(invalid_argument) for degrees other than 0, 90, 180 and 270. If the container cannot
  // state a rotation, error(unsupported) is thrown when the file begins.
  void set_orientation(int stream, display_orientation orientation);

  // Writes a packet. Its timestamps are in the time base of the added stream_info. Packets of a
  // stream must be in decoding order; packets of several streams are interleaved. Throws
  // error(invalid_argument) for a packet without a time, or one that goes back in time. Throws
  // error(unsupported) for a frame that only an edit list of MP4 can cut off.
  void write(int stream, const packet& next);

  // Writes the packets that an encoder has completed.
  template <class Encoder>
  void write_ready(int stream, Encoder& from) {
    while (auto next = from.receive()) write(stream, *next);
  }

  // Completes the file: it is on the disk and has its name. A file without packets has only
  // headers, in which readers of MP4 find no streams. Throws error(invalid_argument) if no stream
  // was added.
  void finish();

  // Returns the file in memory. Throws error(invalid_argument) before finish(), and for a file that
  // is not in memory.
  buffer content() const;

 private:
  class state;
  explicit muxer(std::unique_ptr<state> of) noexcept;

  std::unique_ptr<state> state_;
};

}  // namespace lade::media
