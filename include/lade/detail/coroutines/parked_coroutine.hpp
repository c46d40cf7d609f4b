// Suspended coroutines that another party resumes.

#pragma once

#include <lade/context.hpp>
#include <lade/detail/coroutines/promise.hpp>
#include <lade/detail/runtime/executor.hpp>

#include <coroutine>

namespace lade::detail {

// The handle of a suspended coroutine. Its resumption is posted to the executor of a context.
// Without a context or an executor it resumes on the calling thread.
class suspended_coroutine {
 public:
  suspended_coroutine() = default;
  explicit suspended_coroutine(std::coroutine_handle<> handle) noexcept : handle_(handle) {}

  // Posts the coroutine, unless the calling thread belongs to the executor or there is none.
  // Returns whether it did.
  bool post_home(const lade::context* where) const noexcept {
    if (!where || !where->home || where->home->is_current()) return false;
    where->home->post(resumption(handle_, where->distance));
    return true;
  }

  // Resumes the coroutine; inside the call if the thread belongs to the executor.
  void resume_at_home(const lade::context* where) const noexcept {
    if (!post_home(where)) handle_.resume();
  }

  // Resumes the coroutine inside the call, on any thread.
  void resume_here() const { handle_.resume(); }

 private:
  std::coroutine_handle<> handle_;
};

// The base of awaiters whose coroutine is resumed by another party: by the coroutine that provides
// the value (waiter), by a reactor (reactor_await), by its child (task::awaiter, called_task), by
// the last of several children (latch), or by a task in another context (with_context). Lives in
// the frame of the coroutine, and is gone when the coroutine has resumed.
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
    coroutine_ = suspended_coroutine(coroutine);
    context_ = base ? base->context : nullptr;
  }

  // The context of the coroutine; null if it is not lade's.
  const lade::context* execution() const noexcept { return context_; }

  // For an await that has already ended, on another thread: posts the coroutine to its executor,
  // unless this thread belongs to it. Returns whether it did.
  bool post_home() const noexcept { return coroutine_.post_home(context_); }

  // Resumes the coroutine; inside the call if the thread belongs to its executor.
  void resume_at_home() const noexcept { coroutine_.resume_at_home(context_); }

  // Resumes the coroutine inside the call, on any thread.
  void resume_here() const { coroutine_.resume_here(); }

 private:
  suspended_coroutine coroutine_;
  const lade::context* context_ = nullptr;
};

}  // namespace lade::detail
