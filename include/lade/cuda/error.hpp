// Errors of CUDA.

#pragma once

#include <lade/error.hpp>

#include <system_error>

namespace lade::cuda {

// The category of error codes of the CUDA runtime. A message is "cudaErrorMemoryAllocation: out of
// memory". `error_code(cudaErrorMemoryAllocation, cuda::category())` compares with `code()` of what
// functions of this module throw.
const std::error_category& category() noexcept;

// Whether an error of CUDA has ended the process's use of the device: an illegal address in a
// kernel, or a failure of the hardware. All later calls fail alike until the process ends.
bool is_sticky(const std::error_code& code) noexcept;

}  // namespace lade::cuda
