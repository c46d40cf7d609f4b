// The context of a GPU, in which NVDEC works.

#pragma once

#include "../capture_guard.hpp"
#include "nvcuvid_api.hpp"

#include <lade/cuda/device.hpp>

#include <string_view>

namespace lade::cuda {

// The primary context, which the CUDA runtime uses, too. Retained while this lives.
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

// Makes a context the calling thread's current one, and the one before again when it is destroyed.
// Calls of NVDEC within end no capture of another thread.
class context_scope {
 public:
  // Throws error if that is not possible.
  context_scope(const primary_context& primary, std::string_view doing) : context_scope(primary) {
    check_nvdec(result_, doing);
  }

  // Does not throw: for destructors. What belongs to the context must be abandoned if it is not
  // current.
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
