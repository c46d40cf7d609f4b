// Collects pictures, to resize them in few launches.

#pragma once

#include "kernel_arguments.hpp"
#include "resample_grid.hpp"

#include <lade/cuda/image_batch.hpp>

struct CUstream_st;

namespace lade::cuda {

// Collects sources of a batch with equal sample sizes. Launches when the parameters of a kernel are
// full, and in `flush`.
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

// Plans the shared memory of a block for these sources. It is small, so that a multiprocessor holds
// several blocks, but at least one row of the widest source.
resample_layout layout_for(const resample_batch& batch) noexcept;

}  // namespace lade::cuda
