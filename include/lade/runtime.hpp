// The runtime: the threads and the memory budget of all runs.

#pragma once

#include <lade/buffer_pool.hpp>
#include <lade/detail/coroutines/promise.hpp>
#include <lade/detail/observability/watchdog.hpp>
#include <lade/detail/runtime/reactor.hpp>
#include <lade/run_options.hpp>
#include <lade/sync_wait.hpp>
#include <lade/task.hpp>
#include <lade/thread_pool.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace lade {

using detail::reactor_kind;

template <class T>
class pipeline;
template <class T>
class run;

class runtime_use;

struct runtime_options {
  unsigned threads = 0;  // threads of the CPU pool, up to 65,536; 0: one per available CPU

  // io_uring, the fallback, or automatic: the environment variable LADE_REACTOR ("io_uring" or
  // "fallback") decides; if it is not set, io_uring if the kernel allows it.
  reactor_kind reactor = reactor_kind::automatic;

  // Number of reactor threads, up to 1,024. The tasks of a stage are assigned to them in turn. 0:
  // as many as reading needs. The runtime then starts with one reactor. It adds one whenever a
  // reactor uses most of a CPU, up to the number of available CPUs, at most 16.
  unsigned reactors = 0;

  // The memory budget of all runs together, in bytes: for their buffers and batches, including
  // batches that the consumer still holds. While the budget is exhausted, reads and other
  // allocations wait until memory is freed. Only the item that the consumer of a run waits for may
  // exceed the budget. So a run always makes progress, one item at a time if need be. Any value is
  // valid.
  std::size_t memory_bytes = std::size_t{1} << 30;

  // The allocator of that memory; null: host_memory(). The CPU must be able to write the memory.
  // For the lifetime see memory_resource.hpp.
  memory_resource* memory = nullptr;
};

// Owns the threads and the memory budget of runs: one or more reactor threads, which wait for the
// operating system, and a CPU pool of threads, which compute. A program needs one runtime. Several
// runtimes are independent of each other.
//
// Lifetime: all runs and tasks on a runtime must end before the runtime is destroyed. A runtime
// must not be destroyed on one of its own threads. Otherwise the destructor ends the process. After
// a fork, only the parent may use the runtime.
class runtime {
 public:
  // Starts the threads. Throws error(invalid_argument) for an unknown LADE_REACTOR, or for an
  // invalid option, which it names, such as `memory` of a GPU. Throws the kernel's error if
  // io_uring is demanded and refused.
  explicit runtime(const runtime_options& options = {});
  ~runtime();

  // The CPU pool.
  thread_pool& pool() noexcept { return *pool_; }

  // For the library. The reactor of the calling thread. On all other threads, each call returns the
  // next reactor in turn.
  detail::reactor& reactor() noexcept;

  // For the library. The reactor for task `number` of a stage. The result may change when the
  // runtime adds a reactor.
  detail::reactor& reactor(std::size_t number) noexcept {
    return *reactors_[number % reactor_count()];
  }

  // The memory budget, from which the buffers of all runs are allocated.
  buffer_pool& memory() noexcept { return memory_; }

  // For the library. Watches the reactors for code that blocks them.
  detail::watchdog& watchdog() noexcept { return *watchdog_; }

  // The service of class S, constructed as S(runtime) by the first call. For a module that keeps an
  // object per runtime, such as handles of a library or a list of waits. The runtime owns its
  // services and destroys them in reverse order at its end, while its threads still run. The
  // constructor of a service must not request another service. Any thread. Throws the exceptions of
  // the constructor.
  template <class S>
  S& service() {
    auto make = [](runtime& where) -> std::shared_ptr<void> { return std::make_shared<S>(where); };
    return *static_cast<S*>(find_service(&service_kind<S>, make));
  }

  // The threads and the reactor in use, in one line: "2 threads, io_uring (Linux 6.18, ...)".
  std::string describe() const;

  // Starts a run, one pass over a pipeline, for a loop in an ordinary thread:
  //
  //   for (auto& batch : runtime.run(batches, {.epoch = epoch})) train(batch);
  //
  // The program must include run.hpp; see there.
  template <class T>
  lade::run<T> run(const pipeline<T>& what, const run_options& options = {});

  // Throws error(wrong_thread) in a child process after a fork.
  void require_same_process() const;

 private:
  friend class runtime_use;

  struct kept_service {
    const void* kind;
    std::shared_ptr<void> object;
  };

  template <class S>
  static inline char service_kind = 0;  // its address identifies the class S

  void* find_service(const void* kind, std::shared_ptr<void> (*make)(runtime&));
  void end_services();

  std::size_t reactor_count() const noexcept {
    return reactor_count_.load(std::memory_order_acquire);
  }
  void add_reactor();
  void add_reactor_if_needed() noexcept;
  void stop_reactors();

  buffer_pool memory_;
  reactor_kind kind_;
  // Reactors are added while others are in use. One thread at a time adds one: the constructor, or
  // a busy reactor that has locked growing_. It fills the next slot of reactors_, then stores
  // reactor_count_ (release). Readers load reactor_count_ (acquire) and use only the slots below.
  // The vector is never resized after the constructor. The destructor sets ending_ under growing_,
  // so that no reactor is added after that, and then stops all threads.
  std::mutex growing_;
  bool ending_ = false;                                     // guarded by growing_
  std::vector<std::unique_ptr<detail::reactor>> reactors_;  // one slot per possible reactor
  std::atomic<std::size_t> reactor_count_ = 0;              // slots in use
  std::atomic<std::size_t> next_reactor_ = 0;
  std::unique_ptr<thread_pool> pool_;
  std::unique_ptr<detail::watchdog> watchdog_;
  std::atomic<std::size_t> uses_ = 0;  // live objects of runtime_use
  std::mutex making_service_;
  std::vector<kept_service> services_;  // guarded by making_service_
  int process_;
};

// Counts as a user of a runtime while it lives. A runtime that is destroyed while it has users ends
// the process. For objects of modules that refer to a runtime beyond the coroutine that made them.
// Any thread.
class runtime_use {
 public:
  explicit runtime_use(runtime& used) noexcept : used_(used) { used_.uses_.fetch_add(1); }
  runtime_use(const runtime_use&) = delete;
  ~runtime_use() { used_.uses_.fetch_sub(1); }

 private:
  runtime& used_;
};

namespace detail {

using lade::runtime_use;

template <class T>
T sync_wait_on(executor& home, runtime& where, task<T> work, std::stop_token stop = {}) {
  require_blocking_allowed();
  where.require_same_process();
  work.require_unstarted();
  runtime_use use(where);
  context execution{
      .runtime = &where, .home = &home, .stop = std::move(stop), .memory = &where.memory()};
  promise_base root;
  root.context = &execution;
  blocking_completion done;
  start_job start(work, root, done);
  start.post(home);
  done.wait();
  return work.take();
}

// The reactor of wait_on_reactor. Throws error(no_runtime), or error(wrong_thread) on a reactor's
// thread.
reactor& reactor_to_wait_for(const context& execution);

}  // namespace detail

// Runs a task on the runtime's CPU pool and blocks until the task has finished. Returns its result.
// A stop requested through `stop` reaches the task and everything that it awaits. Throws the
// exceptions of the task, and error(wrong_thread) on a thread that belongs to a runtime.
template <class T>
T sync_wait(runtime& where, task<T> work, std::stop_token stop = {}) {
  return detail::sync_wait_on(where.pool(), where, std::move(work), std::move(stop));
}

// Runs a task on a reactor of the runtime of `execution`, in that context, and blocks the
// calling thread until the task has finished. Returns its result, or throws its exception. For
// callbacks of libraries that expect bytes at once: a module calls such a library on threads of a
// dedicated thread_pool, and the callback blocks here.
//
// While it blocks, its thread runs nothing else. On the CPU pool of the runtime it may therefore
// wait forever, if the task itself needs that pool.
//
// `execution` must outlive the call. Throws error(no_runtime) if it has no runtime, and
// error(wrong_thread) on the thread of a reactor, which must not block.
template <class T>
T wait_on_reactor(const context& execution, task<T> work) {
  auto& reactor = detail::reactor_to_wait_for(execution);
  work.require_unstarted();
  context on_reactor = execution;
  on_reactor.home = &reactor;
  detail::promise_base root;
  root.context = &on_reactor;
  detail::blocking_completion done;
  detail::start_job start(work, root, done);
  start.post(reactor);
  done.wait();
  return work.take();
}

}  // namespace lade
