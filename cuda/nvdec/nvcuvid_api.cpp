#include "nvcuvid_api.hpp"

#include <lade/cuda/error.hpp>
#include <lade/error.hpp>

#include <atomic>
#include <string>

#include <dlfcn.h>

namespace lade::cuda {

// The libraries are never closed: their threads outlive what used them.
class driver_libraries {
 public:
  driver_libraries() {
    void* cuda = open("libcuda.so.1");
    load(cuda, "cuInit", table_.init);
    load(cuda, "cuDeviceGet", table_.device_get);
    load(cuda, "cuDevicePrimaryCtxRetain", table_.retain_context);
    load(cuda, "cuDevicePrimaryCtxRelease_v2", table_.release_context);
    load(cuda, "cuCtxPushCurrent_v2", table_.push_context);
    load(cuda, "cuCtxPopCurrent_v2", table_.pop_context);
    void* video = open("libnvcuvid.so.1");
    load(video, "cuvidGetDecoderCaps", table_.get_decoder_caps);
    load(video, "cuvidCreateDecoder", table_.create_decoder);
    load(video, "cuvidDestroyDecoder", table_.destroy_decoder);
    load(video, "cuvidDecodePicture", table_.decode_picture);
    load(video, "cuvidGetDecodeStatus", table_.get_decode_status);
    load(video, "cuvidReconfigureDecoder", table_.reconfigure_decoder);
    load(video, "cuvidMapVideoFrame64", table_.map_frame);
    load(video, "cuvidUnmapVideoFrame64", table_.unmap_frame);
    load(video, "cuvidCreateVideoParser", table_.create_parser);
    load(video, "cuvidParseVideoData", table_.parse_data);
    load(video, "cuvidDestroyVideoParser", table_.destroy_parser);
  }

  const nvcuvid_api& table() const {
    if (missing_.empty()) return table_;
    throw error(errc::unsupported, "load NVDEC", missing_);
  }

 private:
  void* open(const char* name) {
    void* library = missing_.empty() ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (!library && missing_.empty()) missing_ = dlerror();
    return library;
  }

  template <class F>
  void load(void* library, const char* name, F& into) {
    if (library) into = reinterpret_cast<F>(dlsym(library, name));
    if (library && !into) missing_ = std::string("the driver lacks ") + name;
  }

  nvcuvid_api table_;
  std::string missing_;
};

static constinit std::atomic<const nvcuvid_api*> replaced_nvcuvid = nullptr;

const nvcuvid_api& nvcuvid() {
  if (auto* replaced = replaced_nvcuvid.load(std::memory_order_relaxed)) return *replaced;
  static const driver_libraries libraries;
  return libraries.table();
}

void replace_nvcuvid(const nvcuvid_api* by) noexcept { replaced_nvcuvid = by; }

void check_nvdec(CUresult result, std::string_view doing) {
  if (result == CUDA_SUCCESS) return;
  throw error(std::error_code(static_cast<int>(result), category()), doing);
}

}  // namespace lade::cuda
