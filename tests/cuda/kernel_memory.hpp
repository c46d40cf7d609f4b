// Memory for tests of kernels: of the CPU, between pages that nothing may touch, or of a GPU.

#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <cuda_runtime_api.h>
#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <unistd.h>

namespace lade::cuda {

enum class kernel_place { emulated, gpu };

inline void require_cuda(cudaError_t result) {
  if (result != cudaSuccess) throw std::runtime_error(cudaGetErrorString(result));
}

inline bool has_gpu() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

// Bytes that an access outside of ends the process with, on the CPU: on one side of them at once,
// on the other after less than a page. On a GPU, compute-sanitizer sees it.
class kernel_memory {
 public:
  // Begins `offset` bytes behind the first page, or ends as many before the last one.
  kernel_memory(kernel_place place, const std::vector<unsigned char>& bytes, std::size_t offset,
                bool at_end)
      : place_(place), size_(bytes.size()) {
    if (place == kernel_place::gpu)
      make_on_gpu(offset);
    else
      make_guarded(offset, at_end);
    write(bytes);
  }
  kernel_memory(const kernel_memory&) = delete;
  kernel_memory& operator=(const kernel_memory&) = delete;
  ~kernel_memory() {
    if (place_ == kernel_place::gpu) {
      cudaFree(memory_);
    } else {
      ASAN_UNPOISON_MEMORY_REGION(memory_, mapped_);
      munmap(memory_, mapped_);
    }
  }

  unsigned char* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

  std::vector<unsigned char> read() const {
    std::vector<unsigned char> bytes(size_);
    if (place_ == kernel_place::gpu)
      require_cuda(cudaMemcpy(bytes.data(), data_, size_, cudaMemcpyDeviceToHost));
    else
      std::copy_n(data_, size_, bytes.data());
    return bytes;
  }

 private:
  void make_on_gpu(std::size_t offset) {
    require_cuda(cudaMalloc(&memory_, offset + size_));
    data_ = static_cast<unsigned char*>(memory_) + offset;
  }

  void make_guarded(std::size_t offset, bool at_end) {
    const auto page = static_cast<std::size_t>(getpagesize());
    const auto usable = (offset + size_ + page - 1) / page * page;
    mapped_ = usable + 2 * page;
    memory_ = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    auto* first = static_cast<unsigned char*>(memory_) + page;
    if (mprotect(first, usable, PROT_READ | PROT_WRITE) != 0)
      throw std::system_error(errno, std::generic_category(), "mprotect");
    data_ = first + (at_end ? usable - size_ - offset : offset);
    ASAN_POISON_MEMORY_REGION(first, static_cast<std::size_t>(data_ - first));
    ASAN_POISON_MEMORY_REGION(data_ + size_,
                              usable - size_ - static_cast<std::size_t>(data_ - first));
  }

  void write(const std::vector<unsigned char>& bytes) {
    if (place_ == kernel_place::gpu)
      require_cuda(cudaMemcpy(data_, bytes.data(), size_, cudaMemcpyHostToDevice));
    else
      std::copy(bytes.begin(), bytes.end(), data_);
  }

  kernel_place place_;
  std::size_t size_;
  std::size_t mapped_ = 0;
  void* memory_ = nullptr;
  unsigned char* data_ = nullptr;
};

// Zeros that take memory only where they are written.
struct sparse_memory {
  explicit sparse_memory(std::size_t size) : bytes(size) {
    data = static_cast<unsigned char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (data == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  }
  sparse_memory(const sparse_memory&) = delete;
  sparse_memory& operator=(const sparse_memory&) = delete;
  ~sparse_memory() { munmap(data, bytes); }

  std::size_t bytes;
  unsigned char* data;
};

}  // namespace lade::cuda
