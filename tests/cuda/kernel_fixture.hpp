// Tests of kernels: on the CPU, by the emulated grids, and on a GPU where there is one.

#pragma once

#include "../support/seed.hpp"
#include "emulated_grids.hpp"
#include "kernel_memory.hpp"
#include "plain_pixels.hpp"

#include <lade/random.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lade::cuda {

// Draws from a seed that a failure prints.
class kernel_test : public testing::TestWithParam<kernel_place> {
 protected:
  void SetUp() override {
    if (GetParam() == kernel_place::emulated)
      grids.emplace(seed_);
    else if (!has_gpu())
      GTEST_SKIP() << "there is no GPU";
  }

  int below(int bound) { return static_cast<int>(draw.below(static_cast<std::uint64_t>(bound))); }
  bool maybe() { return below(2) == 1; }

  // 1 to `most`, small values more often.
  int any_size(int most) { return 1 + below(1 + below(most)); }

  std::vector<unsigned char> any_bytes(std::size_t count) {
    std::vector<unsigned char> bytes(count);
    for (auto& byte : bytes) byte = static_cast<unsigned char>(draw.below(256));
    return bytes;
  }

  element_type any_type() {
    static constexpr element_type types[]{element_type::u8, element_type::f16, element_type::bf16,
                                          element_type::f32};
    return types[below(4)];
  }

  // A batch of a random kind; its memory comes later.
  image_batch any_batch(int width, int height, int channels) {
    image_batch to{.type = any_type(),
                   .layout = maybe() ? pixel_layout::chw : pixel_layout::hwc,
                   .width = width,
                   .height = height,
                   .channels = channels,
                   .bgr = maybe()};
    for (auto& mean : to.mean) mean = static_cast<float>(draw.uniform(-1, 1));
    for (auto& stddev : to.stddev) stddev = static_cast<float>(draw.uniform(0.2, 2));
    return to;
  }

  crop_box any_crop(int width, int height) {
    crop_box crop{.width = draw.uniform(0.01, 0.99) * width,
                  .height = draw.uniform(0.01, 0.99) * height,
                  .isolated = maybe()};
    crop.left = draw.uniform(0, 1) * (width - crop.width);
    crop.top = draw.uniform(0, 1) * (height - crop.height);
    return crop;
  }

  std::unique_ptr<kernel_memory> memory_of(const std::vector<unsigned char>& bytes,
                                           std::size_t offset = 0, bool at_end = false) {
    return std::make_unique<kernel_memory>(GetParam(), bytes, offset, at_end);
  }

  // Waits for the kernels, which must have succeeded.
  void finish() {
    if (GetParam() == kernel_place::gpu) require_cuda(cudaDeviceSynchronize());
  }

  // What `write` writes for `count` images: write(batch), with the memory of the batch. All of it
  // is other than zero before. On a GPU, the emulated grids must write the same bits.
  template <class F>
  std::vector<unsigned char> written(image_batch to, std::size_t count, std::size_t offset,
                                     F write) {
    const auto bytes = count * std::size_t(to.width) * std::size_t(to.height) *
                       std::size_t(to.channels) * element_bytes(to.type);
    const auto memory =
        memory_of(std::vector<unsigned char>(bytes, 0xa5), offset * element_bytes(to.type));
    to.data = memory->data();
    write(to);
    finish();
    return memory->read();
  }

  std::optional<emulated_grids> grids;

 private:
  std::uint64_t seed_ = test::new_seed();
  testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};

 protected:
  random draw{seed_};
};

inline std::string name_of(const testing::TestParamInfo<kernel_place>&) { return "Random"; }

}  // namespace lade::cuda

// Runs the cases of a suite by the emulated grids, and on a GPU.
#define LADE_KERNEL_SUITE(suite)                                                                  \
  INSTANTIATE_TEST_SUITE_P(Emulated, suite, testing::Values(lade::cuda::kernel_place::emulated)); \
  INSTANTIATE_TEST_SUITE_P(Gpu, suite, testing::Values(lade::cuda::kernel_place::gpu))
