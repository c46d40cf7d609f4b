// Names of codings, and their numbers in NVDEC's interface.

#pragma once

#include "nvcuvid_api.hpp"

#include <lade/cuda/nvdec/capabilities.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace lade::cuda {

// Empty for codecs that the CPU decodes.
std::optional<cudaVideoCodec> nvdec_codec(std::string_view name) noexcept;

// The coding of a sequence.
video_coding coding_of(const CUVIDEOFORMAT& sequence) noexcept;

// The surface format of a coding; empty if it is not supported: grey, 4:2:2.
std::optional<cudaVideoSurfaceFormat> surface_format(const video_coding& coding) noexcept;

std::string to_string(const video_coding& coding);  // "hevc 4:2:0 with 10 bits"

// Clears the cached limits of the drivers. For tests.
void forget_limits() noexcept;

}  // namespace lade::cuda
