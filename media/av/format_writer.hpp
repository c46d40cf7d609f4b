// FFmpeg's muxers with lade's output.

#pragma once

#include "av_messages.hpp"
#include "byte_output.hpp"
#include "decoding_times.hpp"
#include "output_io.hpp"

#include <lade/media/av.hpp>
#include <lade/media/av/muxer.hpp>
#include <lade/media/av/packet.hpp>
#include <lade/media/av/stream_info.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

extern "C" {
#include <libavformat/avformat.h>
}

namespace lade::media {

// Returns FFmpeg's muxer by name, or by the extension of `path`. Throws error(unsupported) if there
// is none, or if it does not write a single file.
const AVOutputFormat& find_output_format(std::string_view name, const std::string& path);

struct av_output_deleter {
  void operator()(AVFormatContext* freed) const noexcept;
};

// Writes a media file. Throws the errors of muxer. One thread at a time.
class format_writer {
 public:
  // `name`: of the file, for errors.
  format_writer(std::unique_ptr<byte_output> output, std::string name, const AVOutputFormat& format,
                std::string_view options);
  format_writer(const format_writer&) = delete;
  format_writer& operator=(const format_writer&) = delete;
  ~format_writer();

  int add(const stream_info& stream);
  void set_metadata(const metadata& of_file);
  void set_metadata(int stream, const metadata& of_stream);
  void set_orientation(int stream, display_orientation orientation);
  void write(int stream, const packet& next);
  void finish();

  bool finished() const noexcept { return stage_ == stage::finished; }

 private:
  enum class stage : std::uint8_t { adding, writing, finished, failed };

  // One stream of the file.
  struct track {
    stream_info source;
    display_orientation orientation;
    av_bsf_context filter;  // inserts headers into packets if the container stores them nowhere
                            // else
    std::optional<decoding_times> times;  // if the source does not state them
    std::optional<std::int64_t> last_dts;
  };

  template <class Call>
  void or_fail(Call call);
  void make_track(const stream_info& stream);
  void begin();
  void begin_file();
  void refuse_unreadable(const av_messages& messages) const;
  std::string codecs() const;
  void require_adding(std::string_view operation) const;
  track& track_of(int stream);
  void state_orientation(int stream);
  void filter_headers(int stream);
  void write_packet(int stream, const packet& next);
  void write_end();
  void write_filtered(int stream, AVPacket& next);
  void write_timed(int stream, bool last);
  void write_rescaled(int stream, AVPacket& next);
  int check(int result, std::string_view operation, const av_messages& messages);
  std::string doing(std::string_view operation) const;

  std::string name_;
  std::unique_ptr<byte_output> output_;
  output_io io_;
  std::unique_ptr<AVFormatContext, av_output_deleter> context_;
  std::vector<track> tracks_;
  stage stage_ = stage::adding;
};

}  // namespace lade::media
