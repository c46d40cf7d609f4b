// A row of values directly before memory that cannot be read or written.

#pragma once

#include <cerrno>
#include <cstddef>
#include <memory>
#include <system_error>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace lade::test {

// A copy of the values. An access behind the last one ends the process, also without a sanitizer.
template <class T>
class guarded_row {
 public:
  explicit guarded_row(const std::vector<T>& values) : page_(std::size_t(getpagesize())) {
    const auto bytes = values.size() * sizeof(T);
    usable_ = (bytes + page_ - 1) / page_ * page_;
    memory_ = mmap(nullptr, usable_ + page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    if (mprotect(memory_, usable_, PROT_READ | PROT_WRITE) != 0)
      throw std::system_error(errno, std::generic_category(), "mprotect");
    data_ = reinterpret_cast<T*>(static_cast<std::byte*>(memory_) + usable_ - bytes);
    std::uninitialized_copy(values.begin(), values.end(), data_);
  }
  guarded_row(const guarded_row&) = delete;
  ~guarded_row() { munmap(memory_, usable_ + page_); }

  T* data() noexcept { return data_; }

 private:
  std::size_t page_;
  std::size_t usable_ = 0;
  void* memory_ = nullptr;
  T* data_ = nullptr;
};

}  // namespace lade::test
