// task<T>: a lazy coroutine with one result and one awaiter.

#pragma once

#include <lade/detail/coroutines/parked_coroutine.hpp>
#include <lade/detail/coroutines/promise.hpp>
#include <lade/detail/coroutines/rendezvous.hpp>
#include <lade/detail/coroutines/result.hpp>

#include <coroutine>
#include <utility>

namespace lade {

namespace detail {

[[noreturn]] void refuse_task(bool moved);

}  // namespace detail

// A lazy coroutine that returns one T or throws. `co_await std::move(task)` starts the task on the
// awaiting thread and returns its result. A second await, or an await of a task that was moved
// from, throws error(invalid_argument).
//
// A task inherits the context of its awaiter: runtime, stop token, executor. The task object owns
// the coroutine and must not be destroyed while the coroutine runs.
//
// Awaiting a task that finishes without suspending costs a call and no atomic operation. It uses no
// stack in any build, since nothing depends on tail calls: a loop may await a million such tasks.
template <class T = void>
class [[nodiscard]] task {
 public:
  class promise_type;
  class awaiter;
  using value_type = T;

  task(task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  task& operator=(task&& other) noexcept {
    std::swap(coroutine_, other.coroutine_);
    return *this;
  }
  ~task() {
    if (coroutine_) coroutine_.destroy();
  }

  awaiter operator co_await() && {
    require_unstarted();
    return awaiter(coroutine_);
  }

  // For code that starts a task without awaiting it (when_all, scope, sync_wait, stages). Starts
  // the task, which must be unstarted, under `parent`. Returns when it finished. For
  // arrival::later, `done` is called when the task finishes, otherwise never.
  detail::arrival start(const detail::promise_base& parent, detail::completion& done) {
    return coroutine_.promise().start(parent, done);
  }
  // Throws error(invalid_argument) if the task was started or moved from.
  void require_unstarted() const {
    if (!coroutine_ || coroutine_.promise().started()) detail::refuse_task(!coroutine_);
  }
  // Moves the result out of a finished task, or rethrows its exception.
  T take() { return coroutine_.promise().take(); }

 private:
  explicit task(std::coroutine_handle<promise_type> coroutine) noexcept : coroutine_(coroutine) {}

  std::coroutine_handle<promise_type> coroutine_;
};

template <class T>
class task<T>::promise_type : public detail::promise_base, public detail::result<T> {
 public:
  task get_return_object() noexcept {
    return task(std::coroutine_handle<promise_type>::from_promise(*this));
  }
  std::suspend_always initial_suspend() noexcept { return {}; }
  auto final_suspend() noexcept {
    struct finish {
      bool await_ready() noexcept { return false; }
      void await_suspend(std::coroutine_handle<promise_type> self) noexcept {
        self.promise().finish();
      }
      void await_resume() noexcept {}
    };
    return finish{};
  }

  bool started() const noexcept { return done_ != nullptr; }

  detail::arrival start(const promise_base& parent, detail::completion& done) {
    inherit(parent);
    done_ = &done;
    return rendezvous_.call(std::coroutine_handle<promise_type>::from_promise(*this));
  }

 private:
  void finish() noexcept {
    if (rendezvous_.arrive()) done_->finished(*done_);
  }

  detail::completion* done_ = nullptr;
  detail::rendezvous rendezvous_;
};

template <class T>
class task<T>::awaiter : private detail::completion, private detail::parked_coroutine {
 public:
  explicit awaiter(std::coroutine_handle<promise_type> child) noexcept
      : detail::completion{resume_parent}, child_(child) {}

  bool await_ready() const noexcept { return false; }

  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> parent) {
    auto* base = detail::base_of(parent);
    note(parent, base);
    auto when = child_.promise().start(base ? *base : detail::promise_base(), *this);
    if (when != detail::arrival::elsewhere) return when == detail::arrival::later;
    return post_home();
  }

  T await_resume() { return child_.promise().take(); }

 private:
  static void resume_parent(detail::completion& self) noexcept {
    static_cast<awaiter&>(self).resume_at_home();
  }

  std::coroutine_handle<promise_type> child_;
};

namespace detail {

// Posts a job to `where` that starts `work`, and calls `done` when `work` has finished.
template <class T>
class start_job {
 public:
  start_job(task<T>& work, const promise_base& parent, completion& done) noexcept
      : work_(work), parent_(parent), done_(done) {}

  void post(executor& where) {
    where.post({[](void* self) noexcept { static_cast<start_job*>(self)->run(); }, this});
  }

 private:
  void run() noexcept {
    auto& done = done_;
    if (work_.start(parent_, done) != arrival::later) done.finished(done);
  }

  task<T>& work_;
  const promise_base& parent_;
  completion& done_;
};

}  // namespace detail
}  // namespace lade
