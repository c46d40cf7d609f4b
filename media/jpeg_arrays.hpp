// Where libjpeg keeps the coefficients of an image that has several scans: in the memory of the
// run. From malloc they come back to the arena of the thread, which keeps them for itself: a pool
// of many threads would hold the coefficients of as many images.

#pragma once

#include <lade/buffer.hpp>

#include <array>
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>

namespace lade::media {

// Stands in for the part of libjpeg's memory manager that holds whole images of coefficients. For
// one decompressor at a time.
class jpeg_arrays {
 public:
  // To be called for each decompressor that has been created. It may be destroyed after this.
  void serve(jpeg_decompress_struct& jpeg) noexcept;

  // Frees them, when the decompressor is done with its image.
  void clear() noexcept;

 private:
  // The blocks of one component, and behind them a pointer to each row. libjpeg calls it a
  // jvirt_barray_control.
  struct blocks {
    buffer memory;
    JBLOCKARRAY rows = nullptr;
    JDIMENSION height = 0;
  };

  static jvirt_barray_ptr request(j_common_ptr jpeg, int pool, boolean zeroed, JDIMENSION width,
                                  JDIMENSION height, JDIMENSION most_rows);
  static JBLOCKARRAY access(j_common_ptr jpeg, jvirt_barray_ptr array, JDIMENSION first,
                            JDIMENSION count, boolean writable);

  blocks* add(JDIMENSION width, JDIMENSION height, bool zeroed) noexcept;

  std::array<blocks, MAX_COMPONENTS> components_;
  std::size_t count_ = 0;
};

}  // namespace lade::media
