#include "convert_grid.hpp"
#include "kernel_launches.hpp"

namespace lade::cuda {

template <class Kind>
static __global__ void __launch_bounds__(convert_threads)
    convert_kernel(const __grid_constant__ convert_batch batch) {
  Kind::run(batch, {blockIdx.x, blockIdx.y, blockIdx.z}, static_cast<int>(threadIdx.x));
}

int launch_convert(const convert_batch& batch, CUstream_st* stream) {
  use_convert_kind(batch, [&](auto kind) {
    const auto shape = grid_of(batch, kind.pixels);
    convert_kernel<decltype(kind)>
        <<<dim3(shape.x, shape.y, shape.z), shape.threads, 0, stream>>>(batch);
  });
  return cudaGetLastError();
}

}  // namespace lade::cuda
