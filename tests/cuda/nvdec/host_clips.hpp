// Clips in memory of a GPU, to be compared with those of the CPU.

#pragma once

#include "../../../cuda/kernel_launches.hpp"
#include "../../../cuda/runtime_api.hpp"

#include <lade/cuda/stream.hpp>
#include <lade/sample.hpp>
#include <lade/tensor.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../../media/av/media_files.hpp"
#include "../emulated_grids.hpp"
#include "coded_videos.hpp"

namespace lade::cuda {

inline sample sample_of(const std::string& recipe) {
  return sample(recipe).with_data(
      media::read_bytes(media::video_path(media::video_recipe(recipe))));
}
inline sample sample_of(const coded_video& video) {
  return sample(video.recipe.file).with_data(media::read_bytes(video.path()));
}

// The elements of a clip as floats.
inline std::vector<float> floats_of(const tensor& host) {
  std::vector<float> all(host.spec().elements());
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = host.type() == element_type::u8 ? static_cast<float>(host.data<std::uint8_t>()[i])
                                             : host.data<float>()[i];
  return all;
}

// A copy behind the work of a stream.
inline tensor host_tensor(const tensor& of, const stream& behind) {
  tensor host(of.spec());
  EXPECT_EQ(api().memcpy_async(host.bytes(), of.bytes(), host.spec().bytes(),
                               cudaMemcpyDeviceToHost, behind.handle()),
            cudaSuccess);
  behind.synchronize();
  return host;
}

inline float largest_difference(const tensor& a, const tensor& b) {
  const auto left = floats_of(a);
  const auto right = floats_of(b);
  float largest = left.size() == right.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i)
    largest = std::max(largest, std::abs(left[i] - right[i]));
  return largest;
}

// Kernels that run on the CPU, on the thread of the fake driver, where their stream comes to them.
class fake_kernels {
 public:
  fake_kernels() : now_(&current_launches()) {
    current_ = this;
    replace_launches(&queued);
  }
  fake_kernels(const fake_kernels&) = delete;
  ~fake_kernels() {
    current_ = nullptr;
    replace_launches(nullptr);
  }

 private:
  // Launches that a failed device has left are only freed.
  template <class Work, int (*kernel_launches::*Launch)(const Work&, CUstream_st*)>
  static int queue(const Work& work, CUstream_st* on) {
    auto run = [](void* argument) {
      const std::unique_ptr<Work> launched(static_cast<Work*>(argument));
      if (current_) run_now<Launch>(*launched);
    };
    auto launched = std::make_unique<Work>(work);
    const int failed = api().launch_host_func(on, run, launched.get());
    if (failed == 0) (void)launched.release();
    return failed;
  }

  template <auto Launch, class Work>
  static void run_now(const Work& work) {
    EXPECT_EQ((current_->now_->*Launch)(work, nullptr), 0);
  }

  static constexpr kernel_launches queued{queue<byte_copy, &kernel_launches::copy>,
                                          queue<convert_batch, &kernel_launches::convert>,
                                          queue<layout_change, &kernel_launches::layout>,
                                          queue<resample_batch, &kernel_launches::resample>};
  static inline fake_kernels* current_ = nullptr;

  emulated_grids emulated_{1};
  const kernel_launches* now_;
};

}  // namespace lade::cuda
