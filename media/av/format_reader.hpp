// FFmpeg's demuxers over our bytes.

#pragma once

#include "av_messages.hpp"
#include "byte_input.hpp"
#include "movie_tables.hpp"
#include "packet_losses.hpp"

#include <lade/media/av.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/media/av/packet.hpp>
#include <lade/media/av/stream_info.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

extern "C" {
#include <libavformat/avformat.h>
}

namespace lade::media {

struct av_format_deleter {
  void operator()(AVFormatContext* freed) const noexcept;
  void operator()(AVIOContext* freed) const noexcept;
};

// Where the decoding times of a stream go back, in units of its time base.
struct step_back {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t position = -1;  // of the packet in the file; below 0 if unknown

  double length() const noexcept { return static_cast<double>(from) - static_cast<double>(to); }
};

// How far, in seconds, decoding times may go back within one part of a file.
inline const rational most_wavering(1, 10);

// An open media file. Blocks while its input does. Throws what demuxer throws, and what the input
// throws. One thread at a time.
class format_reader {
 public:
  // `probes`: whether FFmpeg may look into packets for parameters that the headers do not state.
  format_reader(std::unique_ptr<byte_input> input, std::string name, const demux_options& options,
                std::stop_token stop = {}, bool probes = true);
  format_reader(const format_reader&) = delete;
  format_reader& operator=(const format_reader&) = delete;

  const std::string& name() const noexcept { return name_; }
  byte_input& input() noexcept { return *input_; }
  AVFormatContext& context() noexcept { return *context_; }
  const std::vector<stream_info>& streams() const noexcept { return streams_; }

  // Throws error(invalid_argument) for a stream that the file does not have.
  const stream_info& stream(int index) const;

  std::string_view format() const noexcept { return context_->iformat->name; }  // FFmpeg's name
  bool is_mov() const noexcept;                                                 // MP4 and QuickTime

  // Whether FFmpeg computed durations from the bit rate, because the file does not state them.
  bool estimates_duration() const noexcept;

  // Whether the headers state what decoders need.
  bool states_parameters() const noexcept;

  // Whether decoding times are the file's. FFmpeg guesses those of Matroska and NUT.
  bool states_decoding_times() const noexcept;

  // How many times damage was tolerated: an error that ended the packets, an end that is missing.
  std::uint64_t damaged() const noexcept { return damaged_; }

  // Checked before each packet and each read.
  void set_stop(std::stop_token stop) noexcept { stop_ = std::move(stop); }

  // Reads packets of these streams only; of all again if empty.
  void select(std::span<const int> streams);

  // The next packet; null at the end. Throws error(limit_exceeded) if the packets since the last
  // seek have many times the bytes of the file.
  av_packet read();

  // Goes to a key frame of the stream at or before the timestamp; to the beginning if there is
  // none.
  void seek(int stream, std::int64_t timestamp);

  // Goes to the first packet of the file. Opens it anew if packets have been read: where timestamps
  // repeat, a seek may end behind the first packets. If that fails, the file is where it was.
  void rewind();

  // Where decoding times of the stream go back furthest, in files of joined parts. Of formats in
  // which that can be anywhere, reads all of the file, once, unless times are trusted; of others,
  // reads nothing. Leaves the file at its end if it reads.
  const std::optional<step_back>& find_step_back(int stream);

  // Whether the file goes on with another part there: times go back by more than most_wavering.
  bool begins_part(int stream, const step_back& at) const;

  // Refuses a stream in which another part begins there, or counts it. Returns whether one does.
  bool report_step_back(int stream, const step_back& step);

  std::string doing(std::string_view operation) const;

 private:
  static int read_bytes(void* self, std::uint8_t* into, int bytes) noexcept;
  static std::int64_t seek_bytes(void* self, std::int64_t offset, int whence) noexcept;
  static int interrupted(void* self) noexcept;
  static int refuse_open(AVFormatContext* format, AVIOContext** opened, const char* url, int flags,
                         AVDictionary** options) noexcept;

  using unopened_context = std::unique_ptr<AVFormatContext, void (*)(AVFormatContext*)>;

  void make_io();
  std::size_t read_input(std::span<std::byte> into, std::uint64_t offset);
  void read_tables();
  std::string missing_samples() const;
  unopened_context make_context(const AVInputFormat& format);
  bool is_end(int result);  // of av_read_frame()
  void check_file_end();
  void check_last_packet();
  void count(const AVPacket& next);
  bool ends_file(const AVPacket& last);
  void report_missing(const std::string& feature);
  void check_input_end();
  bool may_step_back();
  void find_steps_back();
  void begin();
  void open();
  void probe();
  int check(int result, std::string_view operation, const av_messages& messages);

  std::string name_;
  std::unique_ptr<byte_input> input_;
  std::stop_token stop_;
  std::uint64_t position_ = 0;
  std::exception_ptr failure_;  // of the input, inside of FFmpeg
  std::string format_;          // of demux_options
  std::string options_;         // of demux_options
  damage_policy damage_ = damage_policy::refuse;
  bool trusts_times_ = false;  // of demux_options
  bool probes_ = true;
  bool has_read_ = false;  // packets, since the file was opened
  std::uint64_t damaged_ = 0;
  bool checked_file_end_ = false;
  bool input_ended_early_ = false;
  std::uint64_t packet_bytes_ = 0;  // of all packets since the last seek
  std::uint64_t packet_count_ = 0;
  std::int64_t last_end_ = 0;  // behind the last packet that was read, in units of its stream
  std::string refused_;        // the URL that the file told FFmpeg to open
  std::unique_ptr<AVIOContext, av_format_deleter> io_;
  std::unique_ptr<AVFormatContext, av_format_deleter> context_;
  std::vector<stream_info> streams_;
  held_bytes held_;      // while the file is opened
  movie_tables tables_;  // of MP4 and QuickTime
  packet_losses losses_;
  bool found_steps_back_ = false;
  std::vector<std::optional<step_back>> steps_back_;  // of each stream, once they have been found
};

// FFmpeg's choice of a stream. `best_stream` returns null if the file has none of the kind;
// `require_stream` throws error(invalid_data).
const stream_info* best_stream(format_reader& file, stream_kind kind);
const stream_info& require_stream(format_reader& file, stream_kind kind);

}  // namespace lade::media
