#include "convert_grid.hpp"
#include "kernel_launches.hpp"
#include "launch_kernel.hpp"

namespace lade::cuda {

template <class Kind>
static __global__ void __launch_bounds__(convert_threads)
    convert_kernel(const __grid_constant__ convert_batch batch) {
  Kind::run(batch, {blockIdx.x, blockIdx.y, blockIdx.z}, static_cast<int>(threadIdx.x));
}

int launch_convert(const convert_batch& batch, CUstream_st* on) {
  int result = cudaSuccess;
  use_convert_kind(batch, [&](auto kind) {
    result = launch_kernel(convert_kernel<decltype(kind)>, grid_of(batch, kind.pixels), batch, on);
  });
  return result;
}

}  // namespace lade::cuda
