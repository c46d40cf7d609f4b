// FFmpeg's demuxers with lade's input.

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

// A step back of the decoding times of a stream, in units of its time base.
struct step_back {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t position = -1;  // of the packet in the file; below 0 if unknown

  double length() const noexcept { return static_cast<double>(from) - static_cast<double>(to); }
};

// The largest step back, in seconds, that does not start another part of a file.
inline const rational most_wavering(1, 10);

// An open media file. Blocks while its input blocks. Throws the errors of demuxer and of the input.
// One thread at a time.
class format_reader {
 public:
  // `probes`: whether FFmpeg may search packets for parameters that the headers lack.
  format_reader(std::unique_ptr<byte_input> input, std::string name, const demux_options& options,
                std::stop_token stop = {}, bool probes = true);
  format_reader(const format_reader&) = delete;
  format_reader& operator=(const format_reader&) = delete;

  const std::string& name() const noexcept { return name_; }
  byte_input& input() noexcept { return *input_; }
  AVFormatContext& context() noexcept { return *context_; }
  const std::vector<stream_info>& streams() const noexcept { return streams_; }

  // Throws error(invalid_argument) if the file has no such stream.
  const stream_info& stream(int index) const;

  std::string_view format() const noexcept { return context_->iformat->name; }  // FFmpeg's name
  bool is_mov() const noexcept;                                                 // MP4 and QuickTime

  // Whether the durations are estimates from the bit rate: the file does not state them.
  bool estimates_duration() const noexcept;

  // Whether the headers state all parameters that decoders need.
  bool states_parameters() const noexcept;

  // Whether the file states decoding times. For Matroska and NUT, FFmpeg guesses them.
  bool states_decoding_times() const noexcept;

  // How many times damage was tolerated: an error that ended the packets, or a truncated file.
  std::uint64_t damaged() const noexcept { return damaged_; }

  // Sets the stop token, which is checked before each packet and each read.
  void set_stop(std::stop_token stop) noexcept { stop_ = std::move(stop); }

  // Restricts read() to these streams; empty: all streams.
  void select(std::span<const int> streams);

  // Returns the next packet; null at the end. Throws error(limit_exceeded) if the packets since the
  // last seek are many times as large as the file.
  av_packet read();

  // Seeks to a key frame of the stream at or before the timestamp; to the beginning if there is
  // none.
  void seek(int stream, std::int64_t timestamp);

  // Seeks to the first packet of the file. Reopens the file if packets have been read: if
  // timestamps repeat, a seek may end after the first packets. If that throws, the position is
  // unchanged.
  void rewind();

  // The largest step back of the decoding times of the stream, in a file of joined parts. In
  // formats whose files may be joined, the first call reads the whole file, unless times are
  // trusted, and leaves it at its end. In other formats, reads nothing.
  const std::optional<step_back>& find_step_back(int stream);

  // Whether another part starts at the step: times go back by more than most_wavering.
  bool begins_part(int stream, const step_back& at) const;

  // If another part starts at the step, throws or counts damage, by the policy. Returns whether one
  // does.
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
  std::exception_ptr failure_;  // of the input, to rethrow after FFmpeg's call
  std::string format_;          // of demux_options
  std::string options_;         // of demux_options
  damage_policy damage_ = damage_policy::refuse;
  bool trusts_times_ = false;  // of demux_options
  bool probes_ = true;
  bool has_read_ = false;  // a packet was read since the file was opened
  std::uint64_t damaged_ = 0;
  bool checked_file_end_ = false;
  bool input_ended_early_ = false;
  std::uint64_t packet_bytes_ = 0;  // of all packets since the last seek
  std::uint64_t packet_count_ = 0;
  std::int64_t last_end_ = 0;  // end time of the last packet, in units of its stream
  std::string refused_;        // the URL of another file, which the file refers to
  std::unique_ptr<AVIOContext, av_format_deleter> io_;
  std::unique_ptr<AVFormatContext, av_format_deleter> context_;
  std::vector<stream_info> streams_;
  held_bytes held_;      // while the file is opened
  movie_tables tables_;  // of MP4 and QuickTime
  packet_losses losses_;
  bool found_steps_back_ = false;
  std::vector<std::optional<step_back>> steps_back_;  // by stream; empty before find_steps_back()
};

// The stream that FFmpeg considers best. If the file has none of the kind, best_stream returns
// null, and require_stream throws error(invalid_data).
const stream_info* best_stream(format_reader& file, stream_kind kind);
const stream_info& require_stream(format_reader& file, stream_kind kind);

}  // namespace lade::media
