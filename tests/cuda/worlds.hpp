// Where a test of the module runs: over the fake driver, or on a GPU.

#pragma once

#include <lade/cuda/device.hpp>
#include <lade/cuda/stream.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include <cuda_runtime_api.h>

#include "fake_driver.hpp"

namespace lade::cuda {

enum class driver_kind { fake, real };

// Tests are skipped where there is no GPU for the real driver.
class world {
 public:
  explicit world(driver_kind kind) {
    if (kind == driver_kind::fake) fake_ = std::make_unique<fake_driver>();
  }
  world(const world&) = delete;
  ~world() {
    for (auto& open : gates_) open = true;
    if (!fake_) {
      (void)cudaDeviceSynchronize();  // the gates are in use until then
    } else {
      EXPECT_TRUE(fake_->faults().empty()) << fake_->faults().front();
    }
  }

  fake_driver* fake() const noexcept { return fake_.get(); }

  // The stream stands still behind what is queued now, until the returned function is called.
  std::function<void()> block(const stream& blocked) {
    if (fake_) return fake_->block(blocked.handle());
    auto& open = gates_.emplace_back(false);
    auto wait = [](void* gate) {
      while (!*static_cast<std::atomic<bool>*>(gate)) std::this_thread::yield();
    };
    EXPECT_EQ(cudaLaunchHostFunc(blocked.handle(), wait, &open), cudaSuccess);
    return [&open] { open = true; };
  }

  // Blocks until the module has called the driver so often; on a GPU it does not know, and returns.
  void until_called(const std::string& function, std::size_t calls) const {
    while (fake_ && fake_->calls(function) < calls) std::this_thread::yield();
  }

 private:
  std::unique_ptr<fake_driver> fake_;
  std::list<std::atomic<bool>> gates_;
};

// The base of tests that run in both worlds.
class InBothWorlds : public testing::TestWithParam<driver_kind> {
 protected:
  void SetUp() override {
    if (GetParam() == driver_kind::real && device::count() == 0) GTEST_SKIP() << device::why_none();
  }
};

// Suites are then called Fake/NAME and Gpu/NAME.
#define LADE_IN_BOTH_WORLDS(name)                                           \
  INSTANTIATE_TEST_SUITE_P(Fake, name, testing::Values(driver_kind::fake)); \
  INSTANTIATE_TEST_SUITE_P(Gpu, name, testing::Values(driver_kind::real))

}  // namespace lade::cuda
