// PNG by FFmpeg's decoder alone (no demuxer, no filter, no scaler).

#pragma once

#include "frame_reader.hpp"

#include <lade/detail/common/byte_view.hpp>
#include <lade/media/av.hpp>

#include <cstdint>

extern "C" {
#include <libavcodec/avcodec.h>
}

namespace lade::media {

// Every image gets a decoder of its own: FFmpeg's keeps the palette and the pixels of the image
// before.
class png_reader final : public frame_reader {
 public:
  static bool recognises(detail::byte_view file) noexcept {
    return file.begins("\x89PNG\r\n\x1a\n");
  }

  void open(const image_file& file) override;
  void close() noexcept override;

 private:
  struct pixels;

  static int allocate(AVCodecContext* codec, AVFrame* frame, int flags);

  void decode_rows(const image_file& file, bool twice);
  void decode(const image_file& file, std::uint8_t fill);
  const std::uint8_t* last_row() const;
  bool last_row_is(std::uint8_t fill) const;
  int row_bytes() const;
  void show(const image_file& file);
  void convert_row(const image_file& file, int y, int channel, std::uint8_t* out);

  int last_row_ = 0;  // the row that is decoded last
  av_frame frame_{check_av(av_frame_alloc())};
};

}  // namespace lade::media
