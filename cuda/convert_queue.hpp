// Collects images that keep their size, to convert them in few launches.

#pragma once

#include "convert_grid.hpp"
#include "kernel_arguments.hpp"

#include <lade/cuda/image_batch.hpp>

struct CUstream_st;

namespace lade::cuda {

// Collects sources of a batch with equal numbers of channels. Launches when the parameters of a
// kernel are full, and in `flush`.
class convert_queue {
 public:
  convert_queue(const image_batch& to, int channels, const checked_item& item, CUstream_st* on);
  convert_queue(const convert_queue&) = delete;
  convert_queue& operator=(const convert_queue&) = delete;

  void add(const convert_source& source);
  void flush();

 private:
  convert_batch joined() const noexcept;

  convert_batch batch_;
  checked_item item_;
  CUstream_st* stream_;
  bool rows_join_ = true;  // rows are contiguous
};

}  // namespace lade::cuda
