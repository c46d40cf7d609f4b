// The functions of nvJPEG, in a table, so that tests can replace them.

#pragma once

#include "nvjpeg_types.hpp"

#include <string_view>

namespace lade::cuda {

// The table that is in use: that of the library, which the first call loads. Throws
// error(unsupported) if there is none, or only one before 12.1, each time.
const nvjpeg_api& nvjpeg();

// For tests, while no decoder lives. Null: the library's.
void replace_nvjpeg(const nvjpeg_api* by) noexcept;

// Throws error(status, doing) if a call has failed. If CUDA has a failure of its own to tell, such
// as one that ended the use of the device, that is the one.
void check_nvjpeg(nvjpeg_status status, std::string_view doing);

}  // namespace lade::cuda
