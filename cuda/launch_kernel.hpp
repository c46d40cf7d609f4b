// Launches kernels from .cu files.

#pragma once

#include "grid_code.hpp"

#include <cuda_runtime_api.h>

namespace lade::cuda {

// Enqueues a kernel with `parameters`, and returns CUDA's result of this launch. CUDA's <<<>>> only
// sets the thread's last error, where errors of other code may be.
template <class Parameters>
int launch_kernel(void (*kernel)(Parameters), const grid_shape& shape, const Parameters& parameters,
                  CUstream_st* on) {
  Parameters copy = parameters;
  void* arguments[] = {&copy};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(shape.x, shape.y, shape.z),
                          dim3(shape.threads), arguments, shape.shared_bytes, on);
}

}  // namespace lade::cuda
