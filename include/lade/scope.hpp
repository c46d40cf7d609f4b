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
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

namespace lade {

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

  // Starts a child and drops its result. Any thread, but not after join() was awaited or the scope
  // was destroyed. If it throws std::bad_alloc, the task is destroyed and is no child.
  template <class T>
  void start(task<T> work);

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
  template <class T>
  class child;
  struct pass_on_stop {
    scope& self;
    void operator()() const noexcept { self.stop(); }
  };

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

template <class T>
class scope::child : public detail::completion {
 public:
  child(scope& parent, task<T> work) noexcept
      : completion{ended}, parent_(parent), work_(std::move(work)) {
    root_.context = &parent.context_;
    mark_ = detail::in_flight_mark(parent.context_.place, detail::in_flight_mark::kind::child);
  }

  void run() noexcept {
    if (work_.start(root_, *this)) ended(*this);
  }

 private:
  static void ended(completion& self) noexcept {
    auto* child = static_cast<scope::child<T>*>(&self);
    std::exception_ptr failure;
    try {
      (void)child->work_.take();
    } catch (...) {
      failure = std::current_exception();
    }
    auto& parent = child->parent_;
    delete child;
    parent.child_ended(std::move(failure));
  }

  scope& parent_;
  detail::promise_base root_;
  task<T> work_;
  detail::in_flight_mark mark_;
};

template <class T>
void scope::start(task<T> work) {
  work.require_unstarted();
  auto* added = new child<T>(*this, std::move(work));
  {
    std::lock_guard lock(mutex_);
    ++live_;
  }
  if (context_.home)
    context_.home->post({[](void* self) noexcept { static_cast<child<T>*>(self)->run(); }, added,
                         context_.distance});
  else
    added->run();
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
