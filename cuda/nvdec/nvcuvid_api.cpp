#include "nvcuvid_api.hpp"

#include "../loaded_library.hpp"

#include <lade/cuda/error.hpp>
#include <lade/error.hpp>

#include <atomic>

namespace lade::cuda {

static nvcuvid_api load_nvcuvid() {
  nvcuvid_api found{};
  const loaded_library cuda("NVDEC", {"libcuda.so.1"});
  cuda.find("cuInit", found.init);
  cuda.find("cuDeviceGet", found.device_get);
  cuda.find("cuDevicePrimaryCtxRetain", found.retain_context);
  cuda.find("cuDevicePrimaryCtxRelease_v2", found.release_context);
  cuda.find("cuCtxPushCurrent_v2", found.push_context);
  cuda.find("cuCtxPopCurrent_v2", found.pop_context);
  const loaded_library video("NVDEC", {"libnvcuvid.so.1"});
  video.find("cuvidGetDecoderCaps", found.get_decoder_caps);
  video.find("cuvidCreateDecoder", found.create_decoder);
  video.find("cuvidDestroyDecoder", found.destroy_decoder);
  video.find("cuvidDecodePicture", found.decode_picture);
  video.find("cuvidGetDecodeStatus", found.get_decode_status);
  video.find("cuvidReconfigureDecoder", found.reconfigure_decoder);
  video.find("cuvidMapVideoFrame64", found.map_frame);
  video.find("cuvidUnmapVideoFrame64", found.unmap_frame);
  video.find("cuvidCreateVideoParser", found.create_parser);
  video.find("cuvidParseVideoData", found.parse_data);
  video.find("cuvidDestroyVideoParser", found.destroy_parser);
  return found;
}

static constinit std::atomic<const nvcuvid_api*> replaced_nvcuvid = nullptr;

const nvcuvid_api& nvcuvid() {
  if (auto* replaced = replaced_nvcuvid.load(std::memory_order_relaxed)) return *replaced;
  static const nvcuvid_api loaded = load_nvcuvid();
  return loaded;
}

void replace_nvcuvid(const nvcuvid_api* by) noexcept { replaced_nvcuvid = by; }

void check_nvdec(CUresult result, std::string_view doing) {
  if (result == CUDA_SUCCESS) return;
  throw error(std::error_code(static_cast<int>(result), category()), doing);
}

}  // namespace lade::cuda
