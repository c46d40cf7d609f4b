// Calls of the driver beside a capture of the program.

#pragma once

#include "runtime_api.hpp"

namespace lade::cuda {

// While a thread captures a CUDA graph in the default mode, CUDA refuses calls of other threads
// that might disturb it, and ends the capture. lade's own queries and allocations disturb none: for
// as long as this object lives, they are allowed on this thread.
class capture_guard {
 public:
  capture_guard() noexcept { (void)api().exchange_capture_mode(&mode_); }
  capture_guard(const capture_guard&) = delete;
  ~capture_guard() { (void)api().exchange_capture_mode(&mode_); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // then that of before
};

}  // namespace lade::cuda
