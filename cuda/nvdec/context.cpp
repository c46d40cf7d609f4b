#include "context.hpp"

namespace lade::cuda {

primary_context::primary_context(device gpu) {
  capture_guard beside_captures;
  check_nvdec(nvcuvid().init(0), "start the driver for NVDEC");
  check_nvdec(nvcuvid().device_get(&device_, gpu.index()), "find a GPU for NVDEC");
  check_nvdec(nvcuvid().retain_context(&handle_, device_), "retain the context of a GPU");
}

primary_context::~primary_context() {
  capture_guard beside_captures;
  (void)nvcuvid().release_context(device_);
}

}  // namespace lade::cuda
