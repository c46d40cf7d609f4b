// Reads BMP with lade's own decoder: FFmpeg accepts truncated files.

#pragma once

#include "colours.hpp"
#include "frame_reader.hpp"

#include <lade/support/byte_view.hpp>

#include <array>
#include <cstdint>

namespace lade::media {

// Supports:
// - the headers of Windows and OS/2
// - 1 to 32 bits per pixel, with a palette or any masks
// - both run-length encodings; skipped pixels have the first colour of the palette
class bmp_reader final : public frame_reader {
 public:
  static bool recognises(support::byte_view file) noexcept { return file.begins("BM"); }

  void open(const image_file& file) override;
  void close() noexcept override;

 private:
  // The bits of a pixel that hold one channel.
  struct mask {
    int shift = 0;
    int bits = 0;
  };
  struct header {
    std::int64_t width = 0;
    std::int64_t height = 0;
    bool top_down = false;
    unsigned bits = 0;  // per pixel
    unsigned compression = 0;
    std::size_t pixels = 0;  // offset of the first row
    std::array<mask, 3> masks{};
  };

  header read_header(const image_file& file);
  static void check_kind(const image_file& file, const header& file_header);
  static void read_masks(const image_file& file, support::byte_view info, header& file_header);
  void read_palette(const image_file& file, support::byte_view entries, std::size_t used,
                    unsigned bits, std::size_t entry_bytes);
  void read_rows(const image_file& file, const header& file_header);
  void read_runs(const image_file& file, const header& file_header);
  void convert_row(support::byte_view row, const header& file_header, std::uint8_t* out);

  palette colours_;
  scratch indices_;  // of one row; of all rows if they are run-length encoded
};

}  // namespace lade::media
