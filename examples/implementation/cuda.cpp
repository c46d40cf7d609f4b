// The module `cuda`, beside core.cpp. Its kernels are in cuda_kernels.cu.

#include <lade/cuda/implementation.hpp>
