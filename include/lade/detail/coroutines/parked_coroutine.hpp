// A suspended coroutine that another party resumes.

#pragma once

#include <lade/context.hpp>
#include <lade/detail/coroutines/promise.hpp>
#include <lade/detail/runtime/executor.hpp>

#include <coroutine>

namespace lade::detail {

// The base of awaiters whose coroutine is resumed by another party: by the coroutine that provides
// the value (waiter), by a reactor (reactor_await), by the last of several children (latch), or by
// a task in another context (with_context). Lives in the frame of the coroutine, and is gone when
// the coroutine has resumed.
//
// - note() must be called first, in await_suspend. Then exactly one call resumes the coroutine,
//   from any thread.
// - The coroutine resumes on its executor. Without an executor it resumes inside the call.
class parked_coroutine {
 public:
  parked_coroutine() = default;
  parked_coroutine(const parked_coroutine&) = delete;
  parked_coroutine& operator=(const parked_coroutine&) = delete;

 protected:
  ~parked_coroutine() = default;

  template <class Promise>
  void note(std::coroutine_handle<Promise> coroutine) noexcept {
    note(coroutine, base_of(coroutine));
  }
  void note(std::coroutine_handle<> coroutine, const promise_base* base) noexcept {
    coroutine_ = coroutine;
    context_ = base ? base->context : nullptr;
  }

  // The context of the coroutine; null if it is not lade's.
  const lade::context* execution() const noexcept { return context_; }

  // For an await that has already ended, on another thread: posts the coroutine to its executor,
  // unless this thread belongs to it. Returns whether it did.
  bool post_home() const noexcept { return detail::post_home(coroutine_, context_); }

  // Resumes the coroutine; inside the call if the thread belongs to its executor.
  void resume_at_home() const noexcept { detail::resume_at_home(coroutine_, context_); }

  // Resumes the coroutine inside the call, on any thread.
  void resume_here() const { coroutine_.resume(); }

 private:
  std::coroutine_handle<> coroutine_;
  const lade::context* context_ = nullptr;
};

}  // namespace lade::detail
