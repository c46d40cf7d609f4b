// Reads PNG with FFmpeg's decoder alone (no demuxer, no filter, no scaler).

#pragma once

#include "frame_reader.hpp"

#include <lade/media/av.hpp>
#include <lade/support/byte_view.hpp>

#include <cstdint>
#include <vector>

extern "C" {
#include <libavcodec/avcodec.h>
}

namespace lade::media {

// Each image gets a new decoder: FFmpeg's keeps the palette and the pixels of the previous image.
class png_reader final : public frame_reader {
 public:
  static bool recognises(support::byte_view file) noexcept {
    return file.begins("\x89PNG\r\n\x1a\n");
  }

  void open(const image_file& file) override;
  void close() noexcept override;

  // Read the stored values of a mask, instead of `open`, in two steps:
  // - open_values reads the header. It throws error(unsupported) for colours, alpha, and more than
  //   `most_bits`; grey and palette images remain.
  // - decode_values decodes. Then row_values copies a row of values, grey levels or palette
  //   indices, without transparency.
  void open_values(const image_file& file, int most_bits);
  void decode_values(const image_file& file);
  void row_values(int y, std::uint16_t* out) const;

 private:
  struct pixels;

  static int allocate(AVCodecContext* codec, AVFrame* frame, int flags);

  void read_header(const image_file& file);
  void decode_rows(const image_file& file);
  void decode(const image_file& file, std::uint8_t fill);
  const std::uint8_t* last_row() const;
  bool last_row_is(std::uint8_t fill) const;
  std::vector<std::uint8_t> last_row_pixels() const;
  int row_bytes() const;
  void show(const image_file& file);
  void convert_row(const image_file& file, int y, int channel, std::uint8_t* out);

  int bits_ = 8;                    // per sample
  bool decodes_twice_ = false;      // one decode cannot detect missing rows
  bool needs_transparency_ = true;  // false if only stored values are read
  int last_row_ = 0;                // the row that is decoded last
  av_frame frame_{check_av(av_frame_alloc())};
};

}  // namespace lade::media
