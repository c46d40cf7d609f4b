#include "kernel_launches.hpp"
#include "launch_kernel.hpp"
#include "resample_grid.hpp"

namespace lade::cuda {

template <int SampleBytes>
static __global__ void __launch_bounds__(resample_tile::threads)
    resample_kernel(const __grid_constant__ resample_batch batch) {
  extern __shared__ sample_taps resample_memory[];
  const auto shared = shared_in(resample_memory, batch.layout);
  resample_thread state;
  resample_block<SampleBytes>(batch, {blockIdx.x, blockIdx.y, blockIdx.z}, shared, [&](auto step) {
    step(static_cast<int>(threadIdx.x), state);
    __syncthreads();
  });
}

int launch_resample(const resample_batch& batch, CUstream_st* on) {
  const auto kernel = batch.sample_bytes == 1 ? resample_kernel<1> : resample_kernel<2>;
  return launch_kernel(kernel, grid_of(batch), batch, on);
}

}  // namespace lade::cuda
