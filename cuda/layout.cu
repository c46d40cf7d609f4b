#include "kernel_launches.hpp"
#include "launch_kernel.hpp"
#include "layout_grid.hpp"

namespace lade::cuda {

template <class Kind>
static __global__ void __launch_bounds__(layout_change::threads)
    layout_kernel(const __grid_constant__ layout_change change) {
  Kind::run(change, {blockIdx.x, blockIdx.y, 0}, static_cast<int>(threadIdx.x), gridDim.y);
}

int launch_layout(const layout_change& change, CUstream_st* on) {
  int result = cudaSuccess;
  use_layout_kind(change, [&](auto kind) {
    result = launch_kernel(layout_kernel<decltype(kind)>, grid_of(change), change, on);
  });
  return result;
}

}  // namespace lade::cuda
