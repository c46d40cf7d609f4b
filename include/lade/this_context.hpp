// A coroutine's access to its own execution context, and tasks in another one.

#pragma once

#include <lade/context.hpp>
#include <lade/detail/coroutines/parked_coroutine.hpp>
#include <lade/detail/coroutines/promise.hpp>
#include <lade/task.hpp>

#include <coroutine>
#include <utility>

namespace lade {

namespace detail {

class this_context_awaiter {
 public:
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
    if (auto* base = base_of(coroutine); base && base->context) context_ = base->context;
    return false;
  }
  context await_resume() const noexcept { return *context_; }

 protected:
  static const context none;
  const context* context_ = &none;
};

inline const context this_context_awaiter::none;

}  // namespace detail

// `co_await this_context()` returns a copy of the context of the awaiting coroutine, such as its
// runtime and stop token. The context of a task never changes. A generator has the context of the
// coroutine that awaits its next value. It may change at each co_yield, so query it again
// afterwards.
inline detail::this_context_awaiter this_context() noexcept { return {}; }

// `co_await this_context_reference()` returns the same by reference, without the cost of a copy. In
// a task the reference is valid until the task ends; in a generator only until the next co_yield.
class this_context_reference : public detail::this_context_awaiter {
 public:
  const context& await_resume() const noexcept { return *context_; }
};

namespace detail {

using lade::this_context_reference;

}  // namespace detail

// `co_await with_context(execution, task)` awaits the task in the context `execution` instead
// of the awaiter's, for example with another stop token, executor or memory:
//
//   auto inner = co_await lade::this_context();
//   inner.memory = nullptr;  // memory that does not count to the budget of the run
//   auto answer = co_await lade::with_context(inner, ask(question));
//
// `execution` must outlive the await; name it, since GCC 12 destroys a context that is a
// temporary of an awaiting expression twice. The awaiter resumes on its own executor. The task is
// started on the awaiting thread. To run on another executor, it must first await continue_on.
//
// Throws error(invalid_argument) for a task that was started or moved from.
template <class T>
class with_context : private detail::completion, private detail::parked_coroutine {
 public:
  with_context(const context& execution, task<T> work)
      : detail::completion{resume_parent}, work_(std::move(work)) {
    work_.require_unstarted();
    root_.context = &execution;
  }

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> parent) {
    auto* base = detail::base_of(parent);
    note(parent, base);
    root_.consumed = base ? base->consumed : nullptr;
    auto when = work_.start(root_, *this);
    if (when != detail::arrival::elsewhere) return when == detail::arrival::later;
    return post_home();
  }
  T await_resume() { return work_.take(); }

 private:
  static void resume_parent(detail::completion& self) noexcept {
    static_cast<with_context&>(self).resume_at_home();
  }

  detail::promise_base root_;
  task<T> work_;
};

}  // namespace lade
