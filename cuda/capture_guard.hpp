// Protects stream captures of the program from calls of lade.

#pragma once

#include "runtime_api.hpp"

namespace lade::cuda {

// Switches the calling thread to the relaxed capture mode during its lifetime.
//
// A thread may capture a CUDA graph in the default mode (cudaStreamCaptureModeGlobal). Then unsafe
// calls of other threads, such as cudaHostAlloc or cudaEventQuery, fail and invalidate the capture.
// The relaxed mode allows them; lade's calls do not disturb captures. Calls that only enqueue work
// on streams that are not capturing need no guard.
class capture_guard {
 public:
  capture_guard() noexcept { (void)api().exchange_capture_mode(&mode_); }
  capture_guard(const capture_guard&) = delete;
  ~capture_guard() { (void)api().exchange_capture_mode(&mode_); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // then the previous mode
};

}  // namespace lade::cuda
