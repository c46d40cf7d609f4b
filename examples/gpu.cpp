#include "gpu.hpp"

#include <lade/cuda/to_device.hpp>
#include <lade/cuda/to_host.hpp>

lade::pipeline<lade::sample_batch> by_gpu(const lade::pipeline<lade::sample_batch>& batches,
                                          int device) {
  return batches | lade::cuda::to_device({.device = device}) | lade::cuda::to_host();
}
