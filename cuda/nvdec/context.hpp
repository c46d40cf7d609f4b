// The CUDA context that NVDEC uses.

#pragma once

#include "../capture_guard.hpp"
#include "nvcuvid_api.hpp"

#include <lade/cuda/device.hpp>

#include <string_view>

namespace lade::cuda {

// Retains the primary context of a GPU, which the CUDA runtime uses as well. The destructor
// releases it.
class primary_context {
 public:
  explicit primary_context(device gpu);
  primary_context(const primary_context&) = delete;
  ~primary_context();

  CUcontext handle() const noexcept { return handle_; }

 private:
  CUdevice device_ = 0;
  CUcontext handle_ = nullptr;
};

// Makes a context current on the calling thread; the destructor restores the previous one. Within
// the scope, calls of NVDEC do not invalidate a stream capture of another thread.
class context_scope {
 public:
  // Throws error if the context cannot be made current.
  context_scope(const primary_context& primary, std::string_view doing) : context_scope(primary) {
    check_nvdec(result_, doing);
  }

  // Does not throw: for destructors. If the context is not current afterwards, objects that belong
  // to it must be abandoned.
  explicit context_scope(const primary_context& primary) noexcept
      : result_(nvcuvid().push_context(primary.handle())) {}

  context_scope(const context_scope&) = delete;
  ~context_scope() {
    CUcontext popped = nullptr;
    if (is_current()) (void)nvcuvid().pop_context(&popped);
  }

  bool is_current() const noexcept { return result_ == CUDA_SUCCESS; }

 private:
  capture_guard beside_captures_;
  CUresult result_;
};

}  // namespace lade::cuda
