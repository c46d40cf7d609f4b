// Errors of CUDA.

#pragma once

#include <lade/error.hpp>

#include <system_error>

namespace lade::cuda {

// The category of error codes of the CUDA runtime. A message is "cudaErrorMemoryAllocation: out of
// memory". `error_code(cudaErrorMemoryAllocation, cuda::category())` compares with `code()` of what
// functions of this module throw.
//
// After a sticky error, such as an illegal address in a kernel or a failure of the hardware, every
// later call fails alike until the process ends. Its codes equal `lade::condition::device_lost`, so
// that the run ends whatever its stages say of failures and retries.
const std::error_category& category() noexcept;

}  // namespace lade::cuda
