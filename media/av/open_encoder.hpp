// FFmpeg's encoders, and the packets that wait to be received from them.

#pragma once

#include <lade/media/av.hpp>
#include <lade/media/av/packet.hpp>
#include <lade/media/av/stream_info.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>

extern "C" {
#include <libavcodec/avcodec.h>
}

namespace lade::media {

// FFmpeg's encoder of the name, or for the codec of the name. Throws error(unsupported) if there is
// none, error(invalid_argument) if it is of another kind.
const AVCodec& find_av_encoder(std::string_view name, AVMediaType kind);

// What video and audio have in common.
struct encoder_settings {
  std::int64_t bit_rate = 0;
  std::optional<double> quality;
  std::string_view options;
};

// An encoder from its opening on. One thread at a time.
class open_encoder {
 public:
  // Takes over a context whose fields are set, and opens it. `doing` is the text of errors.
  open_encoder(av_codec_context context, const encoder_settings& settings, std::string doing);
  open_encoder(const open_encoder&) = delete;
  open_encoder& operator=(const open_encoder&) = delete;
  ~open_encoder();

  AVCodecContext& context() noexcept { return *context_; }
  const stream_info& stream() const noexcept { return stream_; }
  const std::string& doing() const noexcept { return doing_; }

  // Throws error(invalid_argument) after finish().
  void require_unfinished() const;

  // Encodes a frame, whose duration its packet will state. Its picture type, quality and colours
  // become those of the encoder: some encoders take them from each frame.
  void send(AVFrame& next);

  // Throws error(failed) if the encoder made fewer packets of video than it was sent frames.
  void finish();
  std::optional<packet> receive();

 private:
  void take_packets();
  void set_duration_of(AVPacket& next);
  void require_content(const AVPacket& next) const;
  void require_all_frames() const;
  void mend_decoding_time(AVPacket& next) const noexcept;

  std::string doing_;
  av_codec_context context_;
  stream_info stream_;
  std::deque<packet> ready_;
  std::map<std::int64_t, std::int64_t> durations_;  // of the frames in the encoder, by pts
  std::uint64_t sent_ = 0;                          // frames
  std::uint64_t drained_ = 0;                       // packets
  bool finished_ = false;
};

}  // namespace lade::media
