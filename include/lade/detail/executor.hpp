// Where coroutines and functions run: the interface that the CPU pool and the reactor share.

#pragma once

#include <coroutine>

namespace lade::detail {

// A call to make: a function and its argument. The queues hold these by value.
struct job {
  void (*run)(void*) noexcept;
  void* argument;

  void operator()() const noexcept { run(argument); }
};

inline job resumption(std::coroutine_handle<> coroutine) noexcept {
  return {[](void* frame) noexcept { std::coroutine_handle<>::from_address(frame).resume(); },
          coroutine.address()};
}

class executor {
 public:
  executor() = default;
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;

  // Has one of the executor's threads run `work`. Any thread may call it.
  virtual void post(job work) = 0;

  // On a thread of the executor: runs some of what is posted, without waiting for more, and returns
  // whether there was any. For destructors that must wait for work of their own executor.
  virtual bool run_some() = 0;

  // Resumes `coroutine` on this executor: now, if this thread belongs to it.
  void resume(std::coroutine_handle<> coroutine);

 protected:
  ~executor() = default;
};

// The executor that this thread belongs to; null for a thread that is not lade's.
extern constinit thread_local executor* this_executor;

inline void executor::resume(std::coroutine_handle<> coroutine) {
  if (this_executor == this)
    coroutine.resume();
  else
    post(resumption(coroutine));
}

// `co_await continue_on(executor)` goes on there. What awaits that coroutine continues at home.
class continue_on {
 public:
  explicit continue_on(executor& where) noexcept : where_(where) {}
  bool await_ready() const noexcept { return this_executor == &where_; }
  void await_suspend(std::coroutine_handle<> coroutine) { where_.post(resumption(coroutine)); }
  void await_resume() const noexcept {}

 private:
  executor& where_;
};

}  // namespace lade::detail
