#include "kernel_launches.hpp"
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

int launch_resample(const resample_batch& batch, CUstream_st* stream) {
  const auto shape = grid_of(batch);
  const dim3 blocks(shape.x, shape.y, shape.z);
  if (batch.sample_bytes == 1)
    resample_kernel<1><<<blocks, shape.threads, shape.shared_bytes, stream>>>(batch);
  else
    resample_kernel<2><<<blocks, shape.threads, shape.shared_bytes, stream>>>(batch);
  return cudaGetLastError();
}

}  // namespace lade::cuda
