// Names of codings, and their numbers in NVDEC's interface.

#pragma once

#include "nvcuvid_api.hpp"

#include <lade/cuda/nvdec/capabilities.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace lade::cuda {

// Nothing for codecs that this module leaves to the CPU.
std::optional<cudaVideoCodec> nvdec_codec(std::string_view name) noexcept;

// The coding of a sequence.
video_coding coding_of(const CUVIDEOFORMAT& sequence) noexcept;

// How pictures of a coding are mapped; nothing if that is not handled: grey, 4:2:2.
std::optional<cudaVideoSurfaceFormat> surface_format(const video_coding& coding) noexcept;

std::string to_string(const video_coding& coding);  // "hevc 4:2:0 with 10 bits"

// Forgets what drivers have said: for tests.
void forget_limits() noexcept;

}  // namespace lade::cuda
