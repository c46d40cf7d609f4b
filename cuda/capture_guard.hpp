// Calls of the driver beside a capture of the program.

#pragma once

#include "runtime_api.hpp"

namespace lade::cuda {

// While a thread captures a CUDA graph in the default mode (cudaStreamCaptureModeGlobal), a call of
// another thread that might disturb it, such as cudaHostAlloc or cudaEventQuery, fails and ends the
// capture, unless that other thread is in another mode. lade's calls disturb no capture: this
// thread is in the relaxed mode for as long as this object lives. Calls that only queue work on
// streams which do not capture need none.
class capture_guard {
 public:
  capture_guard() noexcept { (void)api().exchange_capture_mode(&mode_); }
  capture_guard(const capture_guard&) = delete;
  ~capture_guard() { (void)api().exchange_capture_mode(&mode_); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // then that of before
};

}  // namespace lade::cuda
