// Compares lade's declarations of nvJPEG with its own header. Only compiled, not run.
#include "../../cuda/nvjpeg_types.hpp"

#include <cstddef>
#include <type_traits>

#include <nvjpeg.h>

namespace lade::cuda {

// Whether values of the types are passed alike: numbers of the same size, and pointers.
template <class Ours, class Theirs>
constexpr bool is_passed_alike() {
  if constexpr (std::is_pointer_v<Ours>)
    return std::is_pointer_v<Theirs>;
  else
    return !std::is_pointer_v<Theirs> && sizeof(Ours) == sizeof(Theirs);
}

template <class Ours, class Theirs>
constexpr bool is_called_alike = false;
template <class Result, class... Args, class TheirResult, class... TheirArgs>
constexpr bool is_called_alike<Result (*)(Args...), TheirResult (*)(TheirArgs...)> = [] {
  if constexpr (sizeof...(Args) == sizeof...(TheirArgs))
    return is_passed_alike<Result, TheirResult>() && (is_passed_alike<Args, TheirArgs>() && ...);
  else
    return false;
}();

template <auto Theirs, auto nvjpeg_api::* Ours>
constexpr bool fits =
    is_called_alike<std::remove_reference_t<decltype(nvjpeg_api{}.*Ours)>, decltype(Theirs)>;

static_assert(fits<nvjpegGetProperty, &nvjpeg_api::get_property>);
static_assert(fits<nvjpegCreateExV2, &nvjpeg_api::create_ex_v2>);
static_assert(fits<nvjpegDestroy, &nvjpeg_api::destroy>);
static_assert(fits<nvjpegJpegStateCreate, &nvjpeg_api::jpeg_state_create>);
static_assert(fits<nvjpegJpegStateDestroy, &nvjpeg_api::jpeg_state_destroy>);
static_assert(fits<nvjpegJpegStreamCreate, &nvjpeg_api::jpeg_stream_create>);
static_assert(fits<nvjpegJpegStreamDestroy, &nvjpeg_api::jpeg_stream_destroy>);
static_assert(fits<nvjpegJpegStreamParseHeader, &nvjpeg_api::jpeg_stream_parse_header>);
static_assert(
    fits<nvjpegJpegStreamGetFrameDimensions, &nvjpeg_api::jpeg_stream_get_frame_dimensions>);
static_assert(fits<nvjpegDecodeParamsCreate, &nvjpeg_api::decode_params_create>);
static_assert(fits<nvjpegDecodeParamsDestroy, &nvjpeg_api::decode_params_destroy>);
static_assert(
    fits<nvjpegDecodeParamsSetOutputFormat, &nvjpeg_api::decode_params_set_output_format>);
static_assert(fits<nvjpegDecodeParamsSetROI, &nvjpeg_api::decode_params_set_roi>);
static_assert(fits<nvjpegDecodeBatchedSupportedEx, &nvjpeg_api::decode_batched_supported_ex>);
static_assert(fits<nvjpegDecodeBatchedInitialize, &nvjpeg_api::decode_batched_initialize>);
static_assert(fits<nvjpegDecodeBatchedEx, &nvjpeg_api::decode_batched_ex>);
static_assert(!fits<nvjpegDestroy, &nvjpeg_api::get_property>);

static_assert(sizeof(nvjpeg_image) == sizeof(nvjpegImage_t));
static_assert(offsetof(nvjpeg_image, pitch) == offsetof(nvjpegImage_t, pitch));
static_assert(sizeof(nvjpeg_allocator) == sizeof(nvjpegDevAllocatorV2_t));
static_assert(offsetof(nvjpeg_allocator, deallocate) == offsetof(nvjpegDevAllocatorV2_t, dev_free));
static_assert(offsetof(nvjpeg_allocator, context) == offsetof(nvjpegDevAllocatorV2_t, dev_ctx));
static_assert(sizeof(nvjpeg_allocator) == sizeof(nvjpegPinnedAllocatorV2_t));
static_assert(offsetof(nvjpeg_allocator, context) ==
              offsetof(nvjpegPinnedAllocatorV2_t, pinned_ctx));
static_assert(is_called_alike<decltype(nvjpeg_allocator::allocate), tDevMallocV2>);
static_assert(is_called_alike<decltype(nvjpeg_allocator::deallocate), tDevFreeV2>);
static_assert(is_called_alike<decltype(nvjpeg_allocator::allocate), tPinnedMallocV2>);
static_assert(is_called_alike<decltype(nvjpeg_allocator::deallocate), tPinnedFreeV2>);

template <class Ours, class Theirs>
constexpr bool equals(Ours ours, Theirs theirs) {
  return static_cast<int>(ours) == static_cast<int>(theirs);
}

static_assert(equals(nvjpeg_status::success, NVJPEG_STATUS_SUCCESS));
static_assert(equals(nvjpeg_status::not_initialized, NVJPEG_STATUS_NOT_INITIALIZED));
static_assert(equals(nvjpeg_status::invalid_parameter, NVJPEG_STATUS_INVALID_PARAMETER));
static_assert(equals(nvjpeg_status::bad_jpeg, NVJPEG_STATUS_BAD_JPEG));
static_assert(equals(nvjpeg_status::jpeg_not_supported, NVJPEG_STATUS_JPEG_NOT_SUPPORTED));
static_assert(equals(nvjpeg_status::allocator_failure, NVJPEG_STATUS_ALLOCATOR_FAILURE));
static_assert(equals(nvjpeg_status::execution_failed, NVJPEG_STATUS_EXECUTION_FAILED));
static_assert(equals(nvjpeg_status::arch_mismatch, NVJPEG_STATUS_ARCH_MISMATCH));
static_assert(equals(nvjpeg_status::internal_error, NVJPEG_STATUS_INTERNAL_ERROR));
static_assert(equals(nvjpeg_status::implementation_not_supported,
                     NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED));
static_assert(equals(nvjpeg_status::incomplete_bitstream, NVJPEG_STATUS_INCOMPLETE_BITSTREAM));
static_assert(equals(nvjpeg_backend_gpu_hybrid, NVJPEG_BACKEND_GPU_HYBRID));
static_assert(equals(nvjpeg_backend_hardware, NVJPEG_BACKEND_HARDWARE));
static_assert(equals(nvjpeg_output_rgb, NVJPEG_OUTPUT_RGB));
static_assert(equals(nvjpeg_output_rgb_interleaved, NVJPEG_OUTPUT_RGBI));
static_assert(equals(nvjpeg_flag_interpolation, NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION));
static_assert(equals(nvjpeg_property_major, MAJOR_VERSION));
static_assert(equals(nvjpeg_property_minor, MINOR_VERSION));

}  // namespace lade::cuda
