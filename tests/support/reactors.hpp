// A fixture for tests that run on both reactors.

#pragma once

#include <lade/runtime.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <semaphore>
#include <string>

namespace lade::testing_support {

// A test that runs on both reactors. Skips io_uring if the kernel does not allow it.
class ReactorTest : public testing::TestWithParam<reactor_kind> {
 protected:
  void SetUp() override {
    if (GetParam() != reactor_kind::io_uring) return;
    try {
      detail::make_reactor(reactor_kind::io_uring);
    } catch (const std::exception& refusal) {
      GTEST_SKIP() << refusal.what();
    }
  }

  static runtime_options options(unsigned threads = 2) {
    return {.threads = threads, .reactor = GetParam()};
  }
};

inline std::string reactor_name(const testing::TestParamInfo<reactor_kind>& info) {
  return info.param == reactor_kind::fallback ? "fallback" : "ring";
}

// Runs `work` on the reactor's thread and waits for its end.
inline void run_on_reactor(runtime& where, std::function<void()> work) {
  struct call {
    std::function<void()> work;
    std::binary_semaphore done{0};
  } call{std::move(work)};
  where.reactor().post({[](void* self) noexcept {
                          static_cast<struct call*>(self)->work();
                          static_cast<struct call*>(self)->done.release();
                        },
                        &call});
  call.done.acquire();
}

}  // namespace lade::testing_support
