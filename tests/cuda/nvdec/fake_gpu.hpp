// A driver and NVDEC in host memory.

#pragma once

#include "../fake_driver.hpp"
#include "fake_nvcuvid.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>

namespace lade::cuda {

// A GPU without a GPU. At its end, nothing was misused, and nothing lives but what was abandoned.
class fake_gpu {
 public:
  fake_gpu() : fake_gpu(fake_nvcuvid::options{}) {}
  explicit fake_gpu(const fake_nvcuvid::options& how) : nvdec(how) {}
  ~fake_gpu() {
    EXPECT_THAT(driver.faults(), testing::IsEmpty());
    EXPECT_THAT(nvdec.faults(), testing::IsEmpty());
    EXPECT_EQ(nvdec.live().contexts, 0);
    EXPECT_EQ(nvdec.live().decoders, abandoned);
    if (abandoned > 0) return;
    EXPECT_EQ(nvdec.live().parsers, 0u);
    EXPECT_EQ(nvdec.live().mapped, 0u);
  }

  fake_driver driver;
  fake_nvcuvid nvdec;
  std::size_t abandoned = 0;  // decoders
};

}  // namespace lade::cuda
