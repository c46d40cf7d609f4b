// The threads that everything runs on.

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

namespace detail {

class runtime_use;

}  // namespace detail

struct runtime_options {
  unsigned threads = 0;  // of the CPU pool, up to 65,536; 0: one for each available CPU

  // io_uring, the fallback, or what the kernel allows. The environment variable LADE_REACTOR
  // ("io_uring" or "fallback") decides where this says automatic.
  reactor_kind reactor = reactor_kind::automatic;

  // Reactor threads, up to 1,024. Tasks of a stage are assigned to them in turn. 0: as many as
  // reading needs. There is one at first, and one more whenever one uses most of a CPU, until there
  // are as many as available CPUs (at most 16).
  unsigned reactors = 0;

  // The budget of all runs together, in bytes: what their buffers and batches may hold, those that
  // the consumer has not let go of included. Where it is reached, reads and whatever else asks for
  // memory wait until some comes back, but for the item that a run waits for, which goes beyond the
  // budget: a run goes on with one item at a time rather than not at all. Any budget is valid.
  std::size_t memory_bytes = std::size_t{1} << 30;

  // Where that memory comes from; null: host_memory(). The CPU must be able to write it. See
  // memory_resource.hpp for how long it must live.
  memory_resource* memory = nullptr;
};

// Owns a reactor thread (or several), which waits for the operating system, and a pool of threads,
// which compute. A program needs one runtime; several are independent of each other. Runs and tasks
// on a runtime must end before it, and it must not be destroyed on one of its own threads: else its
// destructor ends the process. After a fork, only the parent may use it.
class runtime {
 public:
  // Throws error(invalid_argument) for an unknown LADE_REACTOR, and that names the option for one
  // that cannot work, such as `memory` of a GPU, or the kernel's reason when io_uring is demanded
  // and refused.
  explicit runtime(const runtime_options& options = {});
  ~runtime();

  thread_pool& pool() noexcept { return *pool_; }

  // The reactor that this thread belongs to; on other threads, one after the other.
  detail::reactor& reactor() noexcept;

  // The reactor for one of many tasks: another one, perhaps, when there are more reactors.
  detail::reactor& reactor(std::size_t number) noexcept {
    return *reactors_[number % reactor_count()];
  }

  buffer_pool& memory() noexcept { return memory_; }
  detail::watchdog& watchdog() noexcept { return *watchdog_; }

  // The service of class S, made as S(runtime) when it is first asked for, for a module that keeps
  // something for each runtime, such as handles of a library or a list of waits. Services are
  // destroyed in reverse order at the end of the runtime, while its threads still run. The
  // constructor of a service must not ask for another one. Any thread. Throws what the constructor
  // throws.
  template <class S>
  S& service() {
    auto make = [](runtime& where) -> std::shared_ptr<void> { return std::make_shared<S>(where); };
    return *static_cast<S*>(find_service(&service_kind<S>, make));
  }

  // What was found and chosen, in a line: "2 threads, io_uring (Linux 6.18, ...)".
  std::string describe() const;

  // Begins a pass over a pipeline, for a loop in an ordinary thread:
  //
  //   for (auto& batch : runtime.run(batches, {.epoch = epoch})) train(batch);
  //
  // See run.hpp, which must be included.
  template <class T>
  lade::run<T> run(const pipeline<T>& what, const run_options& options = {});

  // Throws error(wrong_thread) in a child process after a fork.
  void require_same_process() const;

 private:
  friend class detail::runtime_use;

  struct kept_service {
    const void* kind;
    std::shared_ptr<void> object;
  };

  template <class S>
  static inline char service_kind = 0;  // its address tells classes apart

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
  std::mutex growing_;
  bool ending_ = false;                                     // guarded by growing_
  std::vector<std::unique_ptr<detail::reactor>> reactors_;  // as many as there may be, some null
  std::atomic<std::size_t> reactor_count_ = 0;              // those that are not
  std::atomic<std::size_t> next_reactor_ = 0;
  std::unique_ptr<thread_pool> pool_;
  std::unique_ptr<detail::watchdog> watchdog_;
  std::atomic<std::size_t> uses_ = 0;  // that have not ended
  std::mutex making_service_;
  std::vector<kept_service> services_;  // guarded by making_service_
  int process_;
};

namespace detail {

// Counts who needs a runtime to live.
class runtime_use {
 public:
  explicit runtime_use(runtime& used) noexcept : used_(used) { used_.uses_.fetch_add(1); }
  runtime_use(const runtime_use&) = delete;
  ~runtime_use() { used_.uses_.fetch_sub(1); }

 private:
  runtime& used_;
};

template <class T>
T sync_wait_on(executor& home, runtime& where, task<T> work, std::stop_token stop = {}) {
  require_blocking_allowed();
  where.require_same_process();
  work.require_unstarted();
  runtime_use use(where);
  context surroundings{
      .runtime = &where, .home = &home, .stop = std::move(stop), .memory = &where.memory()};
  promise_base root;
  root.context = &surroundings;
  blocking_completion done;
  start_job start(work, root, done);
  start.post(home);
  done.wait();
  return work.take();
}

}  // namespace detail

// Runs a task on the runtime's CPU pool and blocks until it has finished. `stop` is what the task
// and all that it awaits are asked to stop by. Throws what the task throws, and
// error(wrong_thread) on a thread that belongs to a runtime.
template <class T>
T sync_wait(runtime& where, task<T> work, std::stop_token stop = {}) {
  return detail::sync_wait_on(where.pool(), where, std::move(work), std::move(stop));
}

}  // namespace lade
