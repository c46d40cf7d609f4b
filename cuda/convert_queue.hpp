// Images that keep their size, collected and launched together.

#pragma once

#include "convert_grid.hpp"
#include "kernel_arguments.hpp"

#include <lade/cuda/image_batch.hpp>

struct CUstream_st;

namespace lade::cuda {

// Collects the sources of a batch that have the same number of channels, and launches as many
// together as a kernel's parameters hold. The last ones with `flush`.
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
  bool rows_join_ = true;  // each row begins where the one before ends
};

}  // namespace lade::cuda
