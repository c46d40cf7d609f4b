// Allocates the coefficients of multi-scan images for libjpeg from the memory of the run. Memory
// from malloc would return to the thread's arena, which keeps it: a pool of many threads would hold
// the coefficients of as many images.

#pragma once

#include <lade/buffer.hpp>

#include <array>
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>

namespace lade::media {

// Replaces the functions of libjpeg's memory manager for whole arrays of coefficients. For one
// decompressor at a time.
class jpeg_arrays {
 public:
  // Installs itself in a decompressor that has been created. The decompressor may be destroyed
  // later than this object.
  void serve(jpeg_decompress_struct& jpeg) noexcept;

  // Frees the arrays. Call when the decompressor has finished its image.
  void clear() noexcept;

 private:
  // The blocks of one component, followed by a pointer to each row: libjpeg's jvirt_barray_control.
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
