// Converts error codes of CUDA to exceptions. No code above examines a result.

#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

namespace lade::cuda {

// Throws error(result, doing) if a call has failed.
void check(cudaError_t result, std::string_view doing);

// For queries: returns whether the work has finished. Throws if the call has failed.
bool is_finished(cudaError_t result, std::string_view doing);

}  // namespace lade::cuda
