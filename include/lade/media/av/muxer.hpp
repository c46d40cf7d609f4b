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
  // FFmpeg's name of the container: "mp4", "matroska". By the extension of the file if empty.
  std::string_view format = {};

  // Options of the container's muxer as "key=value:key=value": "movflags=+faststart". Unknown ones
  // are refused.
  std::string_view options = {};
};

// A media file that is written.
//
// Name. A file is written under its name with ".part" behind it, and gets its name, in place of a
// file that has it, from finish(). Without finish(), the part stays, and another muxer of the same
// file overwrites it. Of a symbolic link, all that is true of the file that it leads to. The new
// file has the permissions of the old one, but not its owner and its other names. Devices and pipes
// are written to directly; a pipe that nobody reads any more is the error EPIPE, without its
// signal.
//
// Bytes are written by lade, through a descriptor; FFmpeg opens nothing by itself. Formats that
// consist of several files are refused by name.
//
// Timestamps are converted from the stream's time base to the container's: exactly if that can
// express them, as MP4 can, else to its nearest unit: a millisecond in Matroska.
//
// Use. One thread at a time. Calls block while the disk does, and must not be made on a reactor.
// After an exception of write() or finish(), whatever its reason, the file is not finished by any
// call: each throws error(invalid_argument).
//
// Codecs. A codec that FFmpeg writes into a container, but does not find there again, is refused:
// VP9 in MPEG-TS, AAC in WAV, any other in a format of one codec. So are formats without packets,
// such as "md5" and "ffmetadata".
//
// Errors name the file: error(unsupported) for an unknown container and a codec that it does not
// hold, be it when FFmpeg says so at a packet, error(invalid_argument) for options that do not
// work, the system's error for a disk that is full or fails, be it at a packet, at the end, or when
// the file is closed.
class muxer {
 public:
  // Begins a file. Throws the system's error if it cannot be created, error(invalid_argument) if
  // the path is empty or another muxer writes the file.
  explicit muxer(std::string path, const mux_options& options = {});

  // Begins a file in memory, which is the calling stage's. `format` is required.
  static muxer in_memory(const mux_options& options);

  muxer(muxer&&) noexcept;
  muxer& operator=(muxer&&) noexcept;
  ~muxer();

  // Adds a stream with the parameters, metadata and orientation of one of an encoder or of another
  // file, before the first packet. Returns its index in this file.
  // Throws error(unsupported), naming encoder and field, for colours of an encoder's stream that
  // neither the stream nor the file states, if decoders would take others.
  int add(const stream_info& stream);

  // Metadata of the file and of a stream, in place of what it had, before the first packet. FFmpeg
  // leaves out keys that the container does not have. Throws error(invalid_argument) for a NUL in a
  // key or value.
  void set_metadata(const metadata& of_file);
  void set_metadata(int stream, const metadata& of_stream);

  // How a video is to be shown, before the first packet. Throws error(invalid_argument) for degrees
  // other than 0, 90, 180 and 270. When the file begins, throws error(unsupported) if the container
  // does not state a turned one.
  void set_orientation(int stream, display_orientation orientation);

  // Writes a packet, whose timestamps are in the time base of the stream_info that was added.
  // Packets of a stream come in decoding order; those of several streams are interleaved. Throws
  // error(invalid_argument) for a packet without a time, or that goes back in time,
  // error(unsupported) for a frame that only an edit list of MP4 can cut off.
  void write(int stream, const packet& next);

  // Writes the packets that an encoder has ready.
  template <class Encoder>
  void write_ready(int stream, Encoder& from) {
    while (auto next = from.receive()) write(stream, *next);
  }

  // Ends the file: it is complete, on the disk, and has its name. A file without packets has only
  // headers, in which readers of MP4 find no streams. Throws error(invalid_argument) if no stream
  // was added.
  void finish();

  // The file in memory, after finish().
  buffer content() const;

 private:
  class state;
  explicit muxer(std::unique_ptr<state> of) noexcept;

  std::unique_ptr<state> state_;
};

}  // namespace lade::media
