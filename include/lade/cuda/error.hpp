// Errors of CUDA.

#pragma once

#include <lade/error.hpp>

#include <system_error>

namespace lade::cuda {

// The category of error codes of the CUDA runtime. A message is "cudaErrorMemoryAllocation: out of
// memory". To test for an error of this module, compare its code() with
// `error_code(cudaErrorMemoryAllocation, cuda::category())`.
//
// After a sticky error, every later call fails with it until the process ends. Such errors are an
// illegal address in a kernel, or a failure of the hardware. Their codes equal
// `lade::condition::device_lost`. Then the run ends, regardless of the policies of its stages for
// failures and retries.
const std::error_category& category() noexcept;

}  // namespace lade::cuda
