// yield_thread: lets work of later stages run first.

#pragma once

#include <lade/detail/coroutines/promise.hpp>
#include <lade/detail/runtime/executor.hpp>

#include <coroutine>

namespace lade::detail {

// The distance of the coroutine's stage from the end of its pipeline; 0 if it has none.
template <class Promise>
unsigned distance_of(std::coroutine_handle<Promise> coroutine) noexcept {
  auto* base = base_of(coroutine);
  return base && base->context ? base->context->distance : 0;
}

// `co_await yield_thread(executor)`, on a thread of the executor: if the next job of its queue is
// nearer to the end of a pipeline, posts the coroutine to the end of the queue. Otherwise does not
// suspend.
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
