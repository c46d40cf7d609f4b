// Awaits several tasks at once.

#pragma once

#include <lade/detail/coroutines/parked_coroutine.hpp>
#include <lade/detail/coroutines/promise.hpp>
#include <lade/task.hpp>

#include <array>
#include <atomic>
#include <coroutine>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace lade {

namespace detail {

// Counts finished children, and resumes their parent when all have finished.
class latch : public completion, private parked_coroutine {
 public:
  latch() noexcept : completion{child_finished} {}

  // `start_children(base)` starts each child with start_child(); `base` is the promise of the
  // parent. Returns whether the parent must suspend.
  template <class Promise, class Start>
  bool start(std::coroutine_handle<Promise> parent, std::size_t children, Start start_children) {
    auto* base = base_of(parent);
    note(parent, base);
    remaining_.store(children + 1, std::memory_order_relaxed);
    start_children(base);
    std::size_t arrived = finished_ + 1;
    bool suspended = suspended_ || finished_ < children;
    if (remaining_.fetch_sub(arrived, std::memory_order_acq_rel) != arrived) return true;
    return suspended && post_home();
  }

  template <class T>
  void start_child(task<T>& child, const promise_base& root) {
    auto when = child.start(root, *this);
    if (when == arrival::later) return;
    ++finished_;
    suspended_ |= when == arrival::elsewhere;
  }

 private:
  static void child_finished(completion& self) noexcept {
    auto& counted = static_cast<latch&>(self);
    if (counted.remaining_.fetch_sub(1, std::memory_order_acq_rel) == 1) counted.resume_at_home();
  }

  std::atomic<std::size_t> remaining_;
  std::size_t finished_ = 0;  // children that finished within start_child()
  bool suspended_ = false;    // one of these finished on another thread
};

// The promise_base that one child of when_all inherits. It has the context of the parent, but a
// separate lineage, since children may consume items concurrently. hand_over() then merges that
// lineage into the parent's.
class child_root : public promise_base {
 public:
  void attach(const promise_base* parent) noexcept {
    if (!parent) return;
    context = parent->context;
    if (parent->consumed) consumed = &lineage_;
  }
  void hand_over(promise_base* parent) const {
    if (consumed) parent->consumed->merge(lineage_);
  }

 private:
  lineage lineage_;
};

template <class T>
using value_or_monostate = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template <class T>
value_or_monostate<T> take_value(task<T>& finished) {
  if constexpr (std::is_void_v<T>) {
    finished.take();
    return {};
  } else {
    return finished.take();
  }
}

template <class... Ts>
class when_all_tuple : public latch {
 public:
  explicit when_all_tuple(task<Ts>... tasks) noexcept : tasks_(std::move(tasks)...) {}

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> parent) {
    return start(parent, sizeof...(Ts), [this](promise_base* base) {
      for (auto& root : roots_) root.attach(base);
      parent_base_ = base;
      auto* root = roots_.data();
      std::apply([&](auto&... child) { (start_child(child, *root++), ...); }, tasks_);
    });
  }
  std::tuple<value_or_monostate<Ts>...> await_resume() {
    for (auto& root : roots_) root.hand_over(parent_base_);
    return std::apply(
        [](auto&... child) { return std::tuple<value_or_monostate<Ts>...>{take_value(child)...}; },
        tasks_);
  }

 private:
  std::tuple<task<Ts>...> tasks_;
  std::array<child_root, sizeof...(Ts)> roots_;
  promise_base* parent_base_ = nullptr;
};

template <class T>
class when_all_range : public latch {
 public:
  explicit when_all_range(std::vector<task<T>> tasks)
      : tasks_(std::move(tasks)), roots_(tasks_.size()) {}

  bool await_ready() const noexcept { return tasks_.empty(); }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> parent) {
    return start(parent, tasks_.size(), [this](promise_base* base) {
      for (auto& root : roots_) root.attach(base);
      parent_base_ = base;
      for (std::size_t i = 0; i < tasks_.size(); ++i) start_child(tasks_[i], roots_[i]);
    });
  }
  auto await_resume() {
    for (auto& root : roots_) root.hand_over(parent_base_);
    if constexpr (std::is_void_v<T>) {
      for (auto& child : tasks_) child.take();
    } else {
      std::vector<T> values;
      values.reserve(tasks_.size());
      for (auto& child : tasks_) values.push_back(child.take());
      return values;
    }
  }

 private:
  std::vector<task<T>> tasks_;
  std::vector<child_root> roots_;
  promise_base* parent_base_ = nullptr;
};

}  // namespace detail

// `co_await when_all(a(), b())` awaits all tasks and returns a tuple of their results, with
// std::monostate for void. It starts the tasks one after the other on the awaiting thread, and
// waits until all have finished. If tasks fail, it throws the exception of the first failed
// argument.
template <class... Ts>
[[nodiscard]] detail::when_all_tuple<Ts...> when_all(task<Ts>... tasks) {
  (tasks.require_unstarted(), ...);
  return detail::when_all_tuple<Ts...>(std::move(tasks)...);
}

// The same for any number of tasks of one type. Returns a vector of the results, or void for void.
template <class T>
[[nodiscard]] detail::when_all_range<T> when_all(std::vector<task<T>> tasks) {
  for (auto& each : tasks) each.require_unstarted();
  return detail::when_all_range<T>(std::move(tasks));
}

}  // namespace lade
