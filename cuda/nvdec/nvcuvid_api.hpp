// The functions of NVDEC and of contexts, loaded at run time, in a table that tests can replace.

#pragma once

#include <cuda.h>
#include <ffnvcodec/dynlink_nvcuvid.h>

#include <string_view>

namespace lade::cuda {

// No pointer is null.
struct nvcuvid_api {
  // In libcuda.so.1.
  decltype(&::cuInit) init = nullptr;
  decltype(&::cuDeviceGet) device_get = nullptr;
  decltype(&::cuDevicePrimaryCtxRetain) retain_context = nullptr;
  decltype(&::cuDevicePrimaryCtxRelease) release_context = nullptr;
  decltype(&::cuCtxPushCurrent) push_context = nullptr;
  decltype(&::cuCtxPopCurrent) pop_context = nullptr;

  // In libnvcuvid.so.1.
  tcuvidGetDecoderCaps* get_decoder_caps = nullptr;
  tcuvidCreateDecoder* create_decoder = nullptr;
  tcuvidDestroyDecoder* destroy_decoder = nullptr;
  tcuvidDecodePicture* decode_picture = nullptr;
  tcuvidGetDecodeStatus* get_decode_status = nullptr;
  tcuvidReconfigureDecoder* reconfigure_decoder = nullptr;
  tcuvidMapVideoFrame64* map_frame = nullptr;
  tcuvidUnmapVideoFrame64* unmap_frame = nullptr;
  tcuvidCreateVideoParser* create_parser = nullptr;
  tcuvidParseVideoData* parse_data = nullptr;
  tcuvidDestroyVideoParser* destroy_parser = nullptr;
};

// The table in use. Throws error(unsupported) with the reason if there is no NVDEC: the libraries
// of the driver cannot be loaded, or lack a function.
const nvcuvid_api& nvcuvid();

// For tests, while no object of this module exists. Null restores the libraries.
void replace_nvcuvid(const nvcuvid_api* by) noexcept;

// Throws error(result, doing) if a call has failed. The error numbers of the driver are those of
// the CUDA runtime.
void check_nvdec(CUresult result, std::string_view doing);

}  // namespace lade::cuda
