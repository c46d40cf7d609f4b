#include <lade/cuda/device.hpp>
#include <lade/cuda/error.hpp>
#include <lade/cuda/event.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/error.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cuda_runtime_api.h>

#include "../../cuda/runtime_api.hpp"
#include "../support/coroutines.hpp"
#include "fake_driver.hpp"

namespace lade::cuda::device_test {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::code_of;

static std::error_code cuda_code(cudaError_t value) { return {value, category()}; }

TEST(CudaDevice, CountsGpus) {
  fake_driver driver({.devices = 3});
  EXPECT_EQ(device::count(), 3);
  EXPECT_EQ(device::why_none(), "");
  EXPECT_EQ(device(2).index(), 2);
  EXPECT_EQ(device(2).name(), "Fake GPU 2");
  EXPECT_EQ(device(1).compute_capability().major, 9);
  EXPECT_EQ(device(0).memory().total_bytes, std::size_t{1} << 30);
}

TEST(CudaDevice, WithoutAGpuOrADriverNoneIsCounted) {
  fake_driver driver({.devices = 0});
  EXPECT_EQ(device::count(), 0);
  EXPECT_EQ(device::why_none(), "cudaErrorNoDevice: no CUDA-capable device is detected");
  EXPECT_EQ(code_of([] { device(0); }), cuda_code(cudaErrorNoDevice));
  driver.fail_next("get_device_count", cudaErrorInsufficientDriver);
  EXPECT_THAT(device::why_none(), HasSubstr("driver version is insufficient"));
}

TEST(CudaDevice, WorksWithoutAReplacedDriver) {
  EXPECT_GE(device::count(), 0);
  EXPECT_EQ(device::why_none().empty(), device::count() > 0);
}

TEST(CudaDevice, OfAnotherNumberIsRefused) {
  fake_driver driver({.devices = 2});
  EXPECT_THAT([] { device(2); }, ThrowsMessage<error>("use GPU 2: there are 2"));
  EXPECT_THAT([] { device(-1); }, ThrowsMessage<error>("use GPU -1: there are 2"));
}

TEST(CudaDevice, IsCurrentWithinAScope) {
  fake_driver driver({.devices = 2});
  {
    current_device second(device(1));
    EXPECT_EQ(device::current(), device(1));
    current_device same(device(1));
  }
  EXPECT_EQ(device::current(), device(0));
  EXPECT_EQ(driver.calls("set_device"), 2u);
}

TEST(CudaDevice, KnowsItsNode) {
  fake_driver driver({.numa_node = 3});
  EXPECT_EQ(device(0).numa_node(), 3u);
}

TEST(CudaDevice, HasNoNodeInASystemWithoutNodes) {
  fake_driver driver;
  EXPECT_FALSE(device(0).numa_node());
}

TEST(CudaDevice, SaysWhatItCannotAnswer) {
  fake_driver driver;
  device gpu(0);
  auto fails = [&](const char* function, auto call) {
    driver.fail_next(function, cudaErrorUnknown);
    EXPECT_EQ(code_of(call), cuda_code(cudaErrorUnknown)) << function;
  };
  fails("get_device_properties", [&] { (void)gpu.name(); });
  fails("device_get_attribute", [&] { (void)gpu.compute_capability(); });
  fails("device_get_attribute", [&] { (void)gpu.numa_node(); });
  fails("mem_get_info", [&] { (void)gpu.memory(); });
  fails("device_synchronize", [&] { gpu.synchronize(); });
  fails("get_device", [] { (void)device::current(); });
  fails("get_device", [&] { current_device same(gpu); });
}

TEST(CudaDevice, ThatCannotBeMadeCurrentThrows) {
  fake_driver driver({.devices = 2});
  device second(1);
  driver.fail_next("set_device", cudaErrorUnknown);
  EXPECT_EQ(code_of([&] { current_device current(second); }), cuda_code(cudaErrorUnknown));
  EXPECT_EQ(device::current(), device(0));
}

TEST(CudaDevice, MustNotBeWaitedForOnAThreadOfARuntime) {
  fake_driver driver;
  device(0).synchronize();
  runtime runtime({.threads = 1});
  auto wait = []() -> task<> {
    device(0).synchronize();
    co_return;
  };
  EXPECT_EQ(code_of([&] { sync_wait(runtime, wait()); }), errc::wrong_thread);
}

TEST(CudaError, NamesTheErrorAndWhatWasBeingDone) {
  fake_driver driver;
  driver.fail_next("mem_get_info", cudaErrorMemoryAllocation);
  EXPECT_THAT([] { device(0).memory(); },
              ThrowsMessage<error>("ask for the memory of a GPU: cudaErrorMemoryAllocation: out of "
                                   "memory"));
}

TEST(CudaError, IsNotLeftBehindForOtherCodeThatAsksForTheLastOne) {
  fake_driver driver({.works_by_itself = false});
  stream work(device(0));
  auto last = work.record();
  EXPECT_FALSE(last.is_complete());
  EXPECT_EQ(api().get_last_error(), cudaSuccess);
  EXPECT_FALSE(work.is_idle());
  EXPECT_EQ(api().get_last_error(), cudaSuccess);
  driver.fail_next("mem_get_info", cudaErrorMemoryAllocation);
  EXPECT_EQ(code_of([] { device(0).memory(); }), cuda_code(cudaErrorMemoryAllocation));
  EXPECT_EQ(api().get_last_error(), cudaSuccess);
  driver.fail_next("get_device_count", cudaErrorNoDevice);
  EXPECT_EQ(device::count(), 0);
  EXPECT_EQ(api().get_last_error(), cudaSuccess);
}

TEST(CudaError, KnowsWhichErrorsEndTheUseOfADevice) {
  for (auto code : {cudaErrorECCUncorrectable, cudaErrorNvlinkUncorrectable, cudaErrorContained,
                    cudaErrorIllegalAddress, cudaErrorLaunchTimeout, cudaErrorContextIsDestroyed,
                    cudaErrorAssert, cudaErrorHardwareStackError, cudaErrorIllegalInstruction,
                    cudaErrorMisalignedAddress, cudaErrorInvalidAddressSpace, cudaErrorInvalidPc,
                    cudaErrorLaunchFailure, cudaErrorTensorMemoryLeak, cudaErrorMpsClientTerminated,
                    cudaErrorExternalDevice})
    EXPECT_EQ(cuda_code(code), condition::device_lost) << cudaGetErrorName(code);
  for (auto code : {cudaErrorMemoryAllocation, cudaErrorInvalidValue, cudaErrorNotReady,
                    cudaErrorStreamCaptureUnsupported, cudaErrorInvalidResourceHandle,
                    cudaErrorLaunchOutOfResources, cudaErrorNotSupported, cudaErrorUnknown})
    EXPECT_NE(cuda_code(code), condition::device_lost) << cudaGetErrorName(code);
  std::error_code system(cudaErrorIllegalAddress, std::system_category());
  EXPECT_NE(system, condition::device_lost);
}

}  // namespace lade::cuda::device_test
