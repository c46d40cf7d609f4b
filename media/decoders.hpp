// The image decoders that each thread keeps.

#pragma once

#include "avif_reader.hpp"
#include "bmp_reader.hpp"
#include "gif_reader.hpp"
#include "jpeg_reader.hpp"
#include "pixel_writer.hpp"
#include "png_reader.hpp"
#include "pnm_reader.hpp"
#include "quick_jpeg.hpp"
#include "resizer.hpp"
#include "tiff_reader.hpp"
#include "webp_reader.hpp"

#include <array>
#include <memory>

namespace lade::media {

// The state for one image in flight.
struct image_lane {
  quick_jpeg jpeg;
  resizer resize;
  pixel_writer writer;
};

// One reader per format, and the lanes that write tensors. Owns all memory that the module keeps
// per thread.
struct decoders {
  // Two images are decoded at a time, while a third, decoded one waits to be resized. Readers other
  // than quick_jpeg use the first lane.
  std::array<image_lane, 3> lanes;
  jpeg_table_cache jpeg_tables;
  jpeg_reader jpeg;  // for images that quick_jpeg does not support
  png_reader png;
  tiff_reader tiff;
  webp_reader webp;
  avif_reader avif;
  gif_reader gif;
  bmp_reader bmp;
  pnm_reader pnm;

  // The reader for the format of `file`, by its first bytes. Throws error(unsupported) for an
  // unknown format, error(invalid_data) for an empty file.
  image_reader& reader_of(const image_file& file);

  // Destroys the idle decoders of the calling thread, and frees their memory.
  static void release() noexcept;
};

// Borrows the decoders of the calling thread until it is destroyed. The first use creates them, and
// the thread keeps them. A nested use, for instance in a hook, creates others.
class used_decoders {
 public:
  used_decoders();
  used_decoders(const used_decoders&) = delete;
  ~used_decoders();

  decoders* operator->() const noexcept { return used_.get(); }

  // Frees the decoders at the end if an image or its result is large: most images are small, and a
  // pool has many threads.
  void record(int width, int height) noexcept {
    large_ = large_ || image_reader::is_large(width, height);
  }

 private:
  std::unique_ptr<decoders> used_;
  bool large_ = false;
};

}  // namespace lade::media
