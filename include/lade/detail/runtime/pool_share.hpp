// pool_share: an executor that uses a limited number of a pool's threads.

#pragma once

#include <lade/detail/runtime/executor.hpp>
#include <lade/detail/runtime/job_queue.hpp>

#include <memory>
#include <mutex>
#include <vector>

namespace lade::detail {

// Runs jobs in FIFO order on at most `threads` threads of a pool at a time. A turn is the right to
// use one thread; it is free, or carries one job through the queue of the pool:
//
//   post() ── a turn is free ──> pool ──> take(): run the job ──> end(): next job of queue_, or
//   free
//          ── no turn is free ─> queue_
//
// - Each job goes through the queue of the pool, so the jobs of others are not delayed.
// - Lock: mutex_ guards queue_ and free_. The owner of a turn accesses it without the lock.
// - Lifetime: a turn in use keeps the share alive, since its job may destroy the owner of the
//   share. The pool must outlive all posted jobs.
// - Threads: while a job runs, its thread belongs to the share and to the pool.
class pool_share final : public executor, public std::enable_shared_from_this<pool_share> {
 public:
  pool_share(executor& pool, unsigned threads);

  void post(job work) noexcept override;
  bool run_some() noexcept override;
  bool has_nearer(unsigned distance) const noexcept override;
  bool has_idle_thread() const noexcept override;

 private:
  struct turn {
    std::shared_ptr<pool_share> of = nullptr;  // null while the turn is free
    job work = {};
  };

  static void take(void* argument) noexcept;
  void begin(turn& free, job work) noexcept;
  void end(turn& ended) noexcept;

  executor& pool_;
  mutable std::mutex mutex_;
  std::vector<turn> turns_;
  std::vector<turn*> free_;  // has capacity for all turns
  job_queue queue_;          // empty while a turn is free
};

}  // namespace lade::detail
