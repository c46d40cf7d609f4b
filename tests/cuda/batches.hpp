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
#include <string>
#include <vector>

#include "../../cuda/runtime_api.hpp"
#include "../support/pipelines.hpp"

namespace lade::cuda {

using numbers_list = std::vector<std::int64_t>;

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
void queue_copy(const tensor& from, std::vector<T>& to, const stream& on) {
  to.resize(from.spec().elements());
  EXPECT_EQ(api().memcpy_async(to.data(), from.bytes(), from.spec().bytes(), cudaMemcpyDefault,
                               on.handle()),
            cudaSuccess);
}

template <class T>
std::vector<T> values(const tensor& from, const stream& on) {
  std::vector<T> to;
  queue_copy(from, to, on);
  on.synchronize();
  return to;
}

// Whether the elements are what wide_writer writes for samples from `first` on.
inline bool is_numbered(const std::vector<std::int32_t>& elements, int first,
                        std::size_t width = 1000) {
  for (std::size_t i = 0; i < elements.size(); ++i)
    if (elements[i] != first + static_cast<int>(i / width + i % width)) return false;
  return !elements.empty();
}

}  // namespace lade::cuda
