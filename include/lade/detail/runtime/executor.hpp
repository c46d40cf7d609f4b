// Where coroutines and functions run: the interface that the CPU pool and the reactor share.

#pragma once

#include <atomic>
#include <coroutine>
#include <cstddef>

namespace lade::detail {

// A call to make: a function and its argument. The queues hold these by value.
struct job {
  void (*run)(void*) noexcept;
  void* argument;
  unsigned distance = 0;  // from the end of a pipeline, in stages: near work is wanted first
  bool may_wait = false;  // until the reactor that posts it has made the steps of its turn

  void operator()() const noexcept { run(argument); }
};

inline job resumption(std::coroutine_handle<> coroutine, unsigned distance) noexcept {
  return {[](void* frame) noexcept { std::coroutine_handle<>::from_address(frame).resume(); },
          coroutine.address(), distance};
}

class executor {
 public:
  // `whole` is what it is a part of, so that its threads belong to that as well.
  explicit executor(const executor* whole = nullptr) noexcept : whole_(whole) {}
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;

  // Has one of the executor's threads run `work`. Any thread may call it. It never fails: without
  // memory for the queue it blocks until there is some.
  virtual void post(job work) noexcept = 0;

  // On a thread of the executor: runs some of what is posted, without waiting for more, and returns
  // whether there was any. For destructors that must wait for work of their own executor.
  virtual bool run_some() noexcept = 0;

  // Whether what comes next is nearer to the end of its pipeline than that.
  virtual bool has_nearer(unsigned) const noexcept { return false; }

  // Whether this thread belongs to it.
  bool is_current() const noexcept;

  // Resumes `coroutine` on this executor: now, if this thread belongs to it.
  void resume(std::coroutine_handle<> coroutine, unsigned distance) noexcept;

  // Told by what needs it, until the same number of remove_use().
  void add_use() noexcept { uses_.fetch_add(1); }
  void remove_use() noexcept { uses_.fetch_sub(1); }

 protected:
  ~executor() = default;

  // Whether there are coroutines that need it to live.
  bool in_use() const noexcept { return uses_ > 0; }

 private:
  const executor* const whole_;
  std::atomic<std::size_t> uses_ = 0;
};

// Held by whoever needs an executor to live.
class executor_use {
 public:
  explicit executor_use(executor& used) noexcept : used_(used) { used_.add_use(); }
  executor_use(const executor_use&) = delete;
  ~executor_use() { used_.remove_use(); }

  bool is_of(const executor& other) const noexcept { return &used_ == &other; }

 private:
  executor& used_;
};

// The executor that this thread belongs to; null for a thread that is not lade's.
extern constinit thread_local executor* this_executor;

inline bool executor::is_current() const noexcept {
  return this_executor == this || (this_executor && this_executor->whole_ == this);
}

inline void executor::resume(std::coroutine_handle<> coroutine, unsigned distance) noexcept {
  if (is_current())
    coroutine.resume();
  else
    post(resumption(coroutine, distance));
}

}  // namespace lade::detail
