// A part of a pool: some of its threads, for the work of several stages.

#pragma once

#include <lade/detail/runtime/executor.hpp>
#include <lade/detail/runtime/job_queue.hpp>

#include <memory>
#include <mutex>
#include <vector>

namespace lade::detail {

// Runs jobs on at most so many threads of a pool at a time, in the order of their arrival. While
// they run, their threads belong to the share as well. Kept by its jobs: one may be what ends its
// owner. The pool outlives what has been posted.
class pool_share final : public executor, public std::enable_shared_from_this<pool_share> {
 public:
  pool_share(executor& pool, unsigned threads);

  void post(job work) noexcept override;
  bool run_some() noexcept override;
  bool has_nearer(unsigned distance) const noexcept override;

 private:
  // The use of one thread, which goes through the pool's queue for every job.
  struct turn {
    std::shared_ptr<pool_share> of = nullptr;
    job work = {};
  };

  static void take(void* argument) noexcept;
  void begin(turn& free, job work) noexcept;
  void end(turn& ended) noexcept;

  executor& pool_;
  mutable std::mutex mutex_;
  std::vector<turn> turns_;
  std::vector<turn*> free_;  // has room for all
  job_queue queue_;          // empty while a turn is free
};

}  // namespace lade::detail
