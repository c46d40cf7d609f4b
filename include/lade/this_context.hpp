// A coroutine's access to its own surroundings.

#pragma once

#include <lade/context.hpp>
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

// `co_await this_context_reference()` gives the context itself. In a task it is valid until the
// task has ended; in a generator only until the next co_yield.
class this_context_reference : public this_context_awaiter {
 public:
  const context& await_resume() const noexcept { return *context_; }
};

// `co_await under(surroundings, task)` awaits the task in other surroundings than the awaiter's.
template <class T>
class under : private completion {
 public:
  under(const context& surroundings, task<T> work)
      : completion{resume_parent}, work_(std::move(work)) {
    work_.require_unstarted();
    root_.context = &surroundings;
  }

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> parent) {
    auto* base = base_of(parent);
    parent_ = parent;
    parent_context_ = base ? base->context : nullptr;
    root_.consumed = base ? base->consumed : nullptr;
    return !work_.start(root_, *this);
  }
  T await_resume() { return work_.take(); }

 private:
  static void resume_parent(completion& self) noexcept {
    auto& waiting = static_cast<under&>(self);
    resume_at_home(waiting.parent_, waiting.parent_context_);
  }

  promise_base root_;
  task<T> work_;
  std::coroutine_handle<> parent_;
  const context* parent_context_ = nullptr;
};

}  // namespace detail

// `co_await this_context()` gives a copy of the context of the awaiting coroutine: its runtime, its
// stop token. A task has one context. A generator has that of whoever awaits its next value: it may
// be another after each co_yield, and is to be asked for again.
inline detail::this_context_awaiter this_context() noexcept { return {}; }

}  // namespace lade
