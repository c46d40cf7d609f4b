// As files are compiled with nvcc's --default-stream per-thread; the library is not.
#define CUDA_API_PER_THREAD_DEFAULT_STREAM

#include <lade/cuda/stream.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include <cuda_runtime_api.h>

#include "../../cuda/stream_users.hpp"
#include "worlds.hpp"

namespace lade::cuda::per_thread_stream_test {

TEST(PerThreadStream, ANullHandleIsThePerThreadStream) {
  fake_driver driver;
  EXPECT_EQ(stream::external(nullptr, device(0)).handle(), cudaStreamPerThread);
  const stream own(device(0));
  EXPECT_EQ(stream::external(own.handle(), device(0)).handle(), own.handle());
  EXPECT_EQ(stream::external(cudaStreamLegacy, device(0)).handle(), cudaStreamLegacy);
}

TEST(PerThreadStream, IsOnTheDeviceThatIsAskedFor) {
  fake_driver driver({.devices = 2});
  EXPECT_EQ(stream::external(nullptr, device(1)).on(), device(1));
}

// Users of memory: the default stream of another thread, behind what is held up, and more.
class UsersOfMemory : public testing::Test {
 protected:
  UsersOfMemory() {
    std::thread([this] {
      release_ = driver_.block(cudaStreamPerThread);
      users_.use_on(stream::per_thread_default(device(0)));
    }).join();
  }

  void expect_to_wait(const stream& next) {
    users_.let_wait(next);
    driver_.run();
    EXPECT_FALSE(next.is_idle());
    release_();
    driver_.run();
    EXPECT_TRUE(next.is_idle());
  }

  fake_driver driver_{{.works_by_itself = false}};
  stream_users users_;
  std::function<void()> release_;
};

TEST_F(UsersOfMemory, AreAwaitedByTheDefaultStreamOfThisThread) {
  expect_to_wait(stream::per_thread_default(device(0)));
}

TEST_F(UsersOfMemory, AreTheDefaultStreamsOfSeveralThreads) {
  users_.use_on(stream::per_thread_default(device(0)));
  expect_to_wait(stream(device(0)));
}

}  // namespace lade::cuda::per_thread_stream_test
