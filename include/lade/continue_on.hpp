// Moves a coroutine to other threads.

#pragma once

#include <lade/detail/coroutines/promise.hpp>
#include <lade/detail/runtime/continue_on.hpp>
#include <lade/detail/runtime/executor.hpp>

#include <coroutine>

namespace lade {

namespace detail {

// The CPU pool of the runtime of a context; null outside a runtime.
executor* cpu_pool_of(const context* execution) noexcept;

}  // namespace detail

// `co_await continue_on(pool)` continues the coroutine on a thread of a thread_pool, or on a
// reactor_thread. Does not suspend if the coroutine runs there already.
//
// The coroutine remains there until it awaits something that suspends: then it resumes on its own
// executor again. The awaiter of the coroutine also resumes on its own executor. So the await suits
// plain code that computes or blocks. If later awaits must resume on the pool too, await a
// coroutine with_context, in a context with that executor.
class continue_on {
 public:
  explicit continue_on(detail::executor& where) noexcept : where_(where) {}
  bool await_ready() const noexcept { return where_.is_current(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> coroutine) {
    where_.post(detail::resumption(coroutine, detail::distance_of(coroutine)));
  }
  void await_resume() const noexcept {}

 private:
  detail::executor& where_;
};

// `co_await continue_on_pool()` does the same with the CPU pool of the coroutine's runtime: before
// code that computes, or blocks briefly, in a coroutine that may run on a reactor. Does not suspend
// outside a runtime.
class continue_on_pool {
 public:
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    auto* base = detail::base_of(coroutine);
    auto* pool = base ? detail::cpu_pool_of(base->context) : nullptr;
    if (!pool || pool->is_current()) return false;
    pool->post(detail::resumption(coroutine, detail::distance_of(coroutine)));
    return true;
  }
  void await_resume() const noexcept {}
};

// Whether the calling thread is that of a reactor. Such a thread must not block, nor compute for
// more than a fraction of a millisecond: nothing else that its reactor waits for makes progress
// meanwhile.
bool on_reactor_thread() noexcept;

}  // namespace lade
