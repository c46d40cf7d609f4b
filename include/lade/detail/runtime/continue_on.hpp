// Going on a little later, on the same executor.

#pragma once

#include <lade/detail/coroutines/promise.hpp>
#include <lade/detail/runtime/executor.hpp>

#include <coroutine>

namespace lade::detail {

template <class Promise>
unsigned distance_of(std::coroutine_handle<Promise> coroutine) noexcept {
  auto* base = base_of(coroutine);
  return base && base->context ? base->context->distance : 0;
}

// On a thread of the executor: `co_await yield_thread(executor)` lets work go first that is nearer
// to the end of its pipeline.
class yield_thread {
 public:
  explicit yield_thread(executor& where) noexcept : where_(where) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    auto distance = distance_of(coroutine);
    if (!where_.has_nearer(distance)) return false;
    where_.post(resumption(coroutine, distance));
    return true;
  }
  void await_resume() const noexcept {}

 private:
  executor& where_;
};

}  // namespace lade::detail
