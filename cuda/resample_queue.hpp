// Pictures that are resized, collected and launched together.

#pragma once

#include "kernel_arguments.hpp"
#include "resample_grid.hpp"

#include <lade/cuda/image_batch.hpp>

struct CUstream_st;

namespace lade::cuda {

// Collects the sources of a batch whose samples have the same number of bytes, and launches as many
// together as a kernel's parameters hold. The last ones with `flush`.
class resample_queue {
 public:
  resample_queue(const image_batch& to, int sample_bytes, const checked_item& item,
                 CUstream_st* on);
  resample_queue(const resample_queue&) = delete;
  resample_queue& operator=(const resample_queue&) = delete;

  void add(const resample_source& source);
  void flush();

 private:
  resample_batch batch_;
  checked_item item_;
  CUstream_st* stream_;
};

// How a block uses its shared memory for these sources: little of it, so that a multiprocessor
// holds several blocks, but at least one row of the widest source.
resample_layout layout_for(const resample_batch& batch) noexcept;

}  // namespace lade::cuda
