// executor: the common interface of the CPU pool, its shares and the reactor.

#pragma once

#include <atomic>
#include <coroutine>
#include <cstddef>

namespace lade::detail {

// A function and its argument, which an executor is to call.
struct job {
  void (*run)(void*) noexcept;
  void* argument;
  unsigned distance = 0;  // stages to the end of the pipeline: near work has priority
  bool may_wait = false;  // posted by a reactor: the wake-up may wait until the end of its turn

  void operator()() const noexcept { run(argument); }
};

inline job resumption(std::coroutine_handle<> coroutine, unsigned distance) noexcept {
  return {[](void* frame) noexcept { std::coroutine_handle<>::from_address(frame).resume(); },
          coroutine.address(), distance};
}

// Runs jobs on its threads. Runs register their use of it, so that the destructors of executors can
// refuse to end one in use.
class executor {
 public:
  // `whole`: the executor that this one is a part of; its threads run the jobs of both. Null: none.
  explicit executor(const executor* whole = nullptr) noexcept : whole_(whole) {}
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;

  // Queues `work` for a thread of the executor. Any thread. Never fails: blocks while there is no
  // memory for the queue.
  virtual void post(job work) noexcept = 0;

  // For destructors that wait for work of their own executor: runs some queued jobs on this thread,
  // which must belong to the executor. Never waits. Returns whether there was a job.
  virtual bool run_some() noexcept = 0;

  // Whether the next job has a smaller distance.
  virtual bool has_nearer(unsigned) const noexcept { return false; }

  // Whether a job posted now would start at once: a thread is idle, and no job waits.
  virtual bool has_idle_thread() const noexcept { return false; }

  // Whether the calling thread belongs to the executor.
  bool is_current() const noexcept;

  // Each call of add_use() requires the executor to live until a call of remove_use().
  void add_use() noexcept { uses_.fetch_add(1); }
  void remove_use() noexcept { uses_.fetch_sub(1); }

 protected:
  ~executor() = default;

  // Whether somebody requires the executor to live.
  bool in_use() const noexcept { return uses_ > 0; }

 private:
  const executor* const whole_;
  std::atomic<std::size_t> uses_ = 0;
};

// Requires an executor to live as long as the object.
class executor_use {
 public:
  explicit executor_use(executor& used) noexcept : used_(used) { used_.add_use(); }
  executor_use(const executor_use&) = delete;
  ~executor_use() { used_.remove_use(); }

  bool is_of(const executor& other) const noexcept { return &used_ == &other; }

 private:
  executor& used_;
};

// The executor that this thread belongs to; null on threads that lade has not started.
extern constinit thread_local executor* this_executor;

inline bool executor::is_current() const noexcept {
  return this_executor == this || (this_executor && this_executor->whole_ == this);
}

}  // namespace lade::detail
