// Batches for tests of copies between host and GPU.

#pragma once

#include <lade/batch.hpp>
#include <lade/cuda/device_batch.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/pipeline.hpp>
#include <lade/sample.hpp>
#include <lade/tensor.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "../../cuda/runtime_api.hpp"
#include "../support/pipelines.hpp"

namespace lade::cuda {

// Pinned memory of the host where there is a GPU, else pageable. The driver may block in a copy
// from or to pageable memory until the stream comes to it: for ever, if the test holds up the
// stream.
template <class T>
class host_allocator {
 public:
  using value_type = T;

  T* allocate(std::size_t count) {
    if (!has_gpu()) return std::allocator<T>().allocate(count);
    void* memory = nullptr;
    if (cudaMallocHost(&memory, count * sizeof(T)) != cudaSuccess) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    if (has_gpu())
      (void)cudaFreeHost(memory);
    else
      std::allocator<T>().deallocate(memory, count);
  }

  friend bool operator==(const host_allocator&, const host_allocator&) = default;

 private:
  static bool has_gpu() noexcept {
    static const bool has = [] {
      int count = 0;
      return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
    }();
    return has;
  }
};

template <class T>
using host_values = std::vector<T, host_allocator<T>>;

// Writes the number that a sample's key is as i32 [width].
struct wide_writer {
  std::int64_t width = 1000;
  tensor_spec spec() const { return {element_type::i32, {width}}; }
  void operator()(const sample& in, const tensor& slot) const {
    for (std::int64_t i = 0; i < width; ++i)
      slot.data<std::int32_t>()[i] = static_cast<std::int32_t>(std::stoi(in.key()) + i);
  }
};

inline sample numbered_sample(int i) {
  return sample(std::to_string(i), 10 * i)
      .with_data(buffer(64))
      .with_field({"number", i})
      .with_field({"caption", "a " + std::to_string(i)});
}

// Batches of two samples, with the label 10 * i.
inline pipeline<sample_batch> numbered_batches(int samples,
                                               const batch_into_options& options = {.size = 2}) {
  return from(test::numbers{samples}) | map(numbered_sample, {.concurrency = 1}) |
         batch_into(wide_writer{}, options);
}

// Queues a copy of a tensor on a stream. The result is there when the stream has passed it.
template <class T>
void queue_copy(const tensor& from, host_values<T>& to, const stream& on) {
  to.resize(from.spec().elements());
  EXPECT_EQ(api().memcpy_async(to.data(), from.bytes(), from.spec().bytes(), cudaMemcpyDefault,
                               on.handle()),
            cudaSuccess);
}

template <class T>
std::vector<T> values(const tensor& from, const stream& on) {
  host_values<T> to;
  queue_copy(from, to, on);
  on.synchronize();
  return {to.begin(), to.end()};
}

// Whether the elements are what wide_writer writes for samples from `first` on.
template <class Elements>
bool is_numbered(const Elements& elements, int first, std::size_t width = 1000) {
  for (std::size_t i = 0; i < elements.size(); ++i)
    if (elements[i] != first + static_cast<int>(i / width + i % width)) return false;
  return !elements.empty();
}

}  // namespace lade::cuda
