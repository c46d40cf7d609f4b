#include "kernel_launches.hpp"
#include "layout_grid.hpp"

namespace lade::cuda {

template <class Kind>
static __global__ void __launch_bounds__(layout_change::threads)
    layout_kernel(const __grid_constant__ layout_change change) {
  Kind::run(change, {blockIdx.x, blockIdx.y, 0}, static_cast<int>(threadIdx.x), gridDim.y);
}

int launch_layout(const layout_change& change, CUstream_st* stream) {
  const auto shape = grid_of(change);
  use_layout_kind(change, [&](auto kind) {
    layout_kernel<decltype(kind)><<<dim3(shape.x, shape.y), shape.threads, 0, stream>>>(change);
  });
  return cudaGetLastError();
}

}  // namespace lade::cuda
