// How the functions of .cu files launch their kernels.

#pragma once

#include "grid_code.hpp"

#include <cuda_runtime_api.h>

namespace lade::cuda {

// Enqueues a kernel that takes `parameters`, and returns what CUDA says of this launch. The <<<>>>
// of CUDA keeps that in the thread's last error, where an error of other code may be.
template <class Parameters>
int launch_kernel(void (*kernel)(Parameters), const grid_shape& shape, const Parameters& parameters,
                  CUstream_st* on) {
  Parameters copy = parameters;
  void* arguments[] = {&copy};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(shape.x, shape.y, shape.z),
                          dim3(shape.threads), arguments, shape.shared_bytes, on);
}

}  // namespace lade::cuda
