// All that a thread decodes images with.

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

// What one image at a time is decoded with.
struct image_lane {
  quick_jpeg jpeg;
  resizer resize;
  pixel_writer writer;
};

// One reader per format, and what turns their rows into a tensor. All memory that the module keeps
// for a thread is in here.
struct decoders {
  // Two images are decoded at a time, while a third one that is complete waits to be resized.
  // Others use the first lane.
  std::array<image_lane, 3> lanes;
  jpeg_table_cache jpeg_tables;
  jpeg_reader jpeg;  // of what quick_jpeg does not read
  png_reader png;
  tiff_reader tiff;
  webp_reader webp;
  avif_reader avif;
  gif_reader gif;
  bmp_reader bmp;
  pnm_reader pnm;

  // The reader of the format that the first bytes of `file` announce. Throws error(unsupported) if
  // they announce none, error(invalid_data) for an empty file.
  image_reader& reader_of(const image_file& file);

  // Destroys those that the calling thread keeps, and so frees their scratch memory.
  static void release() noexcept;
};

// The decoders of the calling thread, for as long as this lives. The first use makes them; the
// thread keeps them for the next. What is called meanwhile, a hook for instance, may decode as
// well: it gets others.
class used_decoders {
 public:
  used_decoders();
  used_decoders(const used_decoders&) = delete;
  ~used_decoders();

  decoders* operator->() const noexcept { return used_.get(); }

  // Has them freed at the end, if an image or its result is large: most images are small, and a
  // pool has many threads.
  void record(int width, int height) noexcept {
    large_ = large_ || image_reader::is_large(width, height);
  }

 private:
  std::unique_ptr<decoders> used_;
  bool large_ = false;
};

}  // namespace lade::media
