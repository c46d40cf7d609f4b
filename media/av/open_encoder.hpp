// Opens FFmpeg's encoders, and queues their packets.

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

// Finds an encoder by its own name or by the name of its codec. Throws error(unsupported) if there
// is none, error(invalid_argument) if it is of another kind.
const AVCodec& find_av_encoder(std::string_view name, AVMediaType kind);

// The settings common to video and audio.
struct encoder_settings {
  std::int64_t bit_rate = 0;
  std::optional<double> quality;
  std::string_view options;
};

// An open encoder. One thread at a time.
class open_encoder {
 public:
  // Opens a context whose fields are set. `doing`: the operation, for errors.
  open_encoder(av_codec_context context, const encoder_settings& settings, std::string doing);
  open_encoder(const open_encoder&) = delete;
  open_encoder& operator=(const open_encoder&) = delete;
  ~open_encoder();

  AVCodecContext& context() noexcept { return *context_; }
  const stream_info& stream() const noexcept { return stream_; }
  const std::string& doing() const noexcept { return doing_; }

  // Throws error(invalid_argument) after finish().
  void require_unfinished() const;

  // Encodes a frame. The duration is copied to its packet. The frame's picture type, quality and
  // colours are set to the encoder's: some encoders use those of each frame.
  void send(AVFrame& next);

  // Drains the encoder. Throws error(failed) if a video encoder returned fewer packets than it
  // received frames.
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
