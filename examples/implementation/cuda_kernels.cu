// The kernels of the module `cuda`, for nvcc.

#include <lade/cuda/implementation.cuh>
