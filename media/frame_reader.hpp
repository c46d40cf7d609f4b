// Images that are not JPEG, by FFmpeg's decoders alone (no demuxer, no filter, no scaler).

#pragma once

#include "av.hpp"
#include "resizer.hpp"
#include "row_ring.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

extern "C" {
#include <libavutil/pixdesc.h>
}

namespace lade::media {

// For one thread. Decodes one image after another, with one context per format. Throws errors
// that begin with `doing`, and is ready for the next image after them.
class frame_reader final : public row_source {
 public:
  // Decodes the first image of `file`. An image of more than `max_pixels` is refused before its
  // pixels are allocated.
  void open(std::span<const std::byte> file, std::string_view doing, std::int64_t max_pixels);

  int width() const noexcept { return frame_->width; }
  int height() const noexcept { return frame_->height; }
  bool is_grey() const noexcept { return grey_; }

  // Gives the pixels from column `left` on as 1 or 3 channels of 8 bits, from row `top` on. The
  // last `kept` rows stay in place.
  void start_rows(int channels, int left, int top, int kept);
  const std::uint8_t* row(int y) override;

  // Gives back the image's memory.
  void close() noexcept { av_frame_unref(frame_.get()); }

 private:
  // A decoder that refuses large images.
  struct context {
    av_codec_context codec;
    std::int64_t max_pixels = 0;
    int refused_width = 0;
    int refused_height = 0;
  };

  static int allocate(AVCodecContext* codec, AVFrame* frame, int flags);

  context& context_for(AVCodecID id);
  void decode(context& with, std::string_view doing);
  void convert_row(int y, std::uint8_t* out);
  void read_channel(int y, int channel, std::uint8_t* out);
  void read_odd_channel(int y, int channel, std::uint8_t* out, int step);

  std::map<AVCodecID, context> contexts_;
  av_packet packet_{check_av(av_packet_alloc())};
  av_frame frame_{check_av(av_frame_alloc())};
  const AVPixFmtDescriptor* format_ = nullptr;
  bool grey_ = false;
  bool yuv_ = false;

  int channels_ = 3;
  int left_ = 0;
  row_ring ring_;
  std::vector<std::uint16_t> line_;
  std::vector<std::uint8_t> rgb_;
};

}  // namespace lade::media
