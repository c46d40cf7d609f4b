#include "copy_grid.hpp"
#include "kernel_launches.hpp"
#include "launch_kernel.hpp"

namespace lade::cuda {

static __global__ void __launch_bounds__(byte_copy::threads)
    copy_kernel(const __grid_constant__ byte_copy copy) {
  copy_group(copy, {blockIdx.x, 0, 0}, static_cast<int>(threadIdx.x));
}

int launch_copy(const byte_copy& copy, CUstream_st* on) {
  return launch_kernel(copy_kernel, grid_of(copy), copy, on);
}

}  // namespace lade::cuda
