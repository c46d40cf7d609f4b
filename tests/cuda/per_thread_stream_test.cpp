// As files are compiled with nvcc's --default-stream per-thread; the library is not.
#define CUDA_API_PER_THREAD_DEFAULT_STREAM

#include <lade/cuda/stream.hpp>

#include <gtest/gtest.h>

#include <cuda_runtime_api.h>

#include "worlds.hpp"

namespace lade::cuda {

TEST(PerThreadStream, IsWhatNullIsWhereCudaTakesItForThatOfTheThread) {
  fake_driver driver;
  EXPECT_EQ(stream::external(nullptr, device(0)).handle(), cudaStreamPerThread);
  const stream own(device(0));
  EXPECT_EQ(stream::external(own.handle(), device(0)).handle(), own.handle());
  EXPECT_EQ(stream::external(cudaStreamLegacy, device(0)).handle(), cudaStreamLegacy);
}

}  // namespace lade::cuda
