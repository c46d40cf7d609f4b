// The table of nvJPEG's functions, which tests can replace.

#pragma once

#include "nvjpeg_types.hpp"

#include <string_view>

namespace lade::cuda {

// The table in use: by default that of the library, which the first call loads. Each call throws
// error(unsupported) if there is no library, or only one before 12.1.
const nvjpeg_api& nvjpeg();

// For tests, while no decoder exists. Null restores the library.
void replace_nvjpeg(const nvjpeg_api* by) noexcept;

// Throws error(status, doing) if a call has failed. If CUDA reports a failure, such as a lost
// device, throws that one instead.
void check_nvjpeg(nvjpeg_status status, std::string_view doing);

}  // namespace lade::cuda
