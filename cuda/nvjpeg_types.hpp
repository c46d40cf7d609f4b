// The part of nvJPEG's interface that lade uses, so that its header is not needed to build lade. A
// test compares both if the header is installed.

#pragma once

#include <cstddef>

struct CUstream_st;
struct nvjpegHandle;
struct nvjpegJpegState;
struct nvjpegJpegStream;
struct nvjpegDecodeParams;

namespace lade::cuda {

// nvjpegStatus_t.
enum class nvjpeg_status : int {
  success = 0,
  not_initialized = 1,
  invalid_parameter = 2,
  bad_jpeg = 3,
  jpeg_not_supported = 4,
  allocator_failure = 5,
  execution_failed = 6,
  arch_mismatch = 7,
  internal_error = 8,
  implementation_not_supported = 9,
  incomplete_bitstream = 10
};

// Values of nvjpegBackend_t, nvjpegOutputFormat_t, the flags of nvjpegCreateExV2, and
// libraryPropertyType.
inline constexpr int nvjpeg_backend_gpu_hybrid = 2;
inline constexpr int nvjpeg_backend_hardware = 3;
inline constexpr int nvjpeg_output_rgb = 3;
inline constexpr int nvjpeg_output_rgb_interleaved = 5;
inline constexpr unsigned nvjpeg_flag_interpolation = 1 << 5;
inline constexpr int nvjpeg_property_major = 0;
inline constexpr int nvjpeg_property_minor = 1;

struct nvjpeg_image {
  unsigned char* channel[4];
  std::size_t pitch[4];
};

// An allocator of device memory or of pinned memory.
struct nvjpeg_allocator {
  int (*allocate)(void* context, void** memory, std::size_t bytes, CUstream_st* stream);
  int (*deallocate)(void* context, void* memory, std::size_t bytes, CUstream_st* stream);
  void* context;
};

// The functions, named as in nvJPEG without the prefix "nvjpeg".
struct nvjpeg_api {
  nvjpeg_status (*get_property)(int property, int* value);
  nvjpeg_status (*create_ex_v2)(int backend, nvjpeg_allocator* device, nvjpeg_allocator* pinned,
                                unsigned flags, nvjpegHandle** handle);
  nvjpeg_status (*destroy)(nvjpegHandle* handle);
  nvjpeg_status (*jpeg_state_create)(nvjpegHandle* handle, nvjpegJpegState** state);
  nvjpeg_status (*jpeg_state_destroy)(nvjpegJpegState* state);
  nvjpeg_status (*jpeg_stream_create)(nvjpegHandle* handle, nvjpegJpegStream** file);
  nvjpeg_status (*jpeg_stream_destroy)(nvjpegJpegStream* file);
  nvjpeg_status (*jpeg_stream_parse_header)(nvjpegHandle* handle, const unsigned char* data,
                                            std::size_t bytes, nvjpegJpegStream* file);
  nvjpeg_status (*jpeg_stream_get_frame_dimensions)(nvjpegJpegStream* file, unsigned* width,
                                                    unsigned* height);
  nvjpeg_status (*decode_params_create)(nvjpegHandle* handle, nvjpegDecodeParams** params);
  nvjpeg_status (*decode_params_destroy)(nvjpegDecodeParams* params);
  nvjpeg_status (*decode_params_set_output_format)(nvjpegDecodeParams* params, int format);
  nvjpeg_status (*decode_params_set_roi)(nvjpegDecodeParams* params, int left, int top, int width,
                                         int height);
  nvjpeg_status (*decode_batched_supported_ex)(nvjpegHandle* handle, nvjpegJpegStream* file,
                                               nvjpegDecodeParams* params, int* is_unsupported);
  nvjpeg_status (*decode_batched_initialize)(nvjpegHandle* handle, nvjpegJpegState* state,
                                             int images, int threads, int format);
  nvjpeg_status (*decode_batched_ex)(nvjpegHandle* handle, nvjpegJpegState* state,
                                     const unsigned char* const* data, const std::size_t* bytes,
                                     nvjpeg_image* to, nvjpegDecodeParams** params,
                                     CUstream_st* stream);
};

}  // namespace lade::cuda
