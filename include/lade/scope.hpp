// Structured concurrency: child tasks that end before their parent continues.

#pragma once

#include <lade/context.hpp>
#include <lade/detail/coroutines/mutex.hpp>
#include <lade/detail/coroutines/promise.hpp>
#include <lade/detail/coroutines/waiter.hpp>
#include <lade/detail/pipeline/path_place.hpp>
#include <lade/task.hpp>

#include <condition_variable>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

namespace lade {

namespace detail {
class run_children;
}

// Child tasks that run beside the coroutine that starts them, and end before that coroutine
// continues:
//
//   scope children(co_await this_context());
//   for (auto& shard : shards) children.start(read(shard));
//   co_await children.join();  // rethrows the first failure, after all have ended
//
// Children run on the executor of their parent: children of a coroutine on the CPU pool run in
// parallel. The first failure cancels all other children.
//
// If a scope is destroyed with live children, as when an exception propagates, the destructor
// cancels the children and blocks until all have ended. On a thread of an executor it runs other
// jobs of that executor meanwhile.
class scope {
 public:
  class join_awaiter;
  class ended_awaiter;

  // For coroutines outside a runtime: start() runs a child inline until the child first suspends.
  scope() : scope(context{}) {}

  // Children inherit the context `execution`. A stop requested there cancels them.
  explicit scope(const context& execution);
  ~scope();

  // Starts a child and drops its result. Any thread, but only until join() is awaited; until it
  // returns, a child that has not ended may still start others. If it throws std::bad_alloc, the
  // task is destroyed and is no child.
  template <class T>
  void start(task<T> work) {
    using mark = detail::in_flight_mark;
    start_child(std::move(work), mark(context_.place, mark::kind::child));
  }

  // `co_await join()` waits for all children, then rethrows the first failure. A stop of the
  // awaiting coroutine does not end the wait.
  [[nodiscard]] join_awaiter join() noexcept;

  // `co_await ended()` waits for all children; join() still reports their failure. Throws
  // error(stopped) if the awaiting coroutine is asked to stop.
  [[nodiscard]] ended_awaiter ended() noexcept;

  // Asks all children to stop. Returns without waiting for them. Any thread.
  void stop() noexcept { detail::request_stop(stop_); }

  // Cancels all children as the failure of a child does: join() rethrows `failure`, unless a child
  // failed before. Any thread, but not after join() has returned.
  void fail(std::exception_ptr failure) noexcept;

  // The stop token of the children.
  std::stop_token stop_token() const noexcept { return context_.stop; }

 private:
  friend class detail::run_children;
  template <class T, class Held>
  class child;
  struct pass_on_stop {
    scope& self;
    void operator()() const noexcept { self.stop(); }
  };

  // Starts a child in the context `execution`, on the executor of that context. The child keeps the
  // owner of the context alive, and ends on the executor of the scope.
  template <class T>
  void start_in(std::shared_ptr<const context> execution, task<T> work) {
    start_child(std::move(work), std::move(execution));
  }

  template <class T, class Held>
  void start_child(task<T> work, Held held);

  void child_ended(std::exception_ptr failure) noexcept;

  std::stop_source stop_;
  context context_;
  std::optional<detail::stop_callback<pass_on_stop>> on_parent_stop_;
  detail::mutex mutex_;
  detail::condition_variable all_ended_;
  std::size_t live_ = 0;
  std::exception_ptr failure_;
  detail::wait_list joining_;
};

// `Held`: an object that lives as long as the child: its mark in a path of a pipeline, or the owner
// of its context.
template <class T, class Held>
class scope::child : private detail::completion {
 public:
  child(scope& parent, task<T> work, Held held) noexcept
      : completion{finished}, parent_(parent), held_(std::move(held)), work_(std::move(work)) {}

  void start() {
    auto& where = execution(held_);
    if (where.home)
      where.home->post(
          {[](void* self) noexcept { static_cast<child*>(self)->run(); }, this, where.distance});
    else
      run();
  }

 private:
  const context& execution(const detail::in_flight_mark&) const noexcept {
    return parent_.context_;
  }
  const context& execution(const std::shared_ptr<const context>& own) const noexcept {
    return *own;
  }

  void run() noexcept {
    detail::promise_base root;
    root.context = &execution(held_);
    if (work_.start(root, *this) != detail::arrival::later) finished(*this);
  }

  static void finished(completion& self) noexcept {
    auto* ended = static_cast<child*>(&self);
    auto& where = ended->parent_.context_;
    if (where.home && !where.home->is_current())
      where.home->post({[](void* ended_child) noexcept { static_cast<child*>(ended_child)->end(); },
                        ended, where.distance});
    else
      ended->end();
  }

  void end() noexcept {
    std::exception_ptr failure;
    try {
      (void)work_.take();
    } catch (...) {
      failure = std::current_exception();
    }
    auto& parent = parent_;
    delete this;
    parent.child_ended(std::move(failure));
  }

  scope& parent_;
  const Held held_;
  task<T> work_;
};

template <class T, class Held>
void scope::start_child(task<T> work, Held held) {
  work.require_unstarted();
  auto* added = new child<T, Held>(*this, std::move(work), std::move(held));
  {
    std::lock_guard lock(mutex_);
    ++live_;
  }
  added->start();
}

class scope::join_awaiter : private detail::listed_waiter {
 public:
  explicit join_awaiter(scope& joined) noexcept : scope_(joined) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> parent) {
    return park_unstoppable(parent, scope_.mutex_, scope_.joining_,
                            [this] { return scope_.live_ == 0; });
  }
  void await_resume() {
    if (scope_.failure_) std::rethrow_exception(std::exchange(scope_.failure_, nullptr));
  }

 private:
  scope& scope_;
};

class scope::ended_awaiter : private detail::waiter {
 public:
  explicit ended_awaiter(scope& watched) noexcept : scope_(watched) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> parent) {
    return park(parent, scope_.mutex_, scope_.joining_, [this] { return scope_.live_ == 0; });
  }
  void await_resume() { finish("wait for the children of a scope"); }

 private:
  scope& scope_;
};

inline scope::join_awaiter scope::join() noexcept { return join_awaiter(*this); }
inline scope::ended_awaiter scope::ended() noexcept { return ended_awaiter(*this); }

}  // namespace lade
