// Records the work of stages on GPUs in the trace of a run.

#pragma once

#include <lade/context.hpp>
#include <lade/runtime.hpp>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace lade::cuda {

// The number of pieces of work in flight on GPUs, per stage. A service of the runtime.
class gpu_levels {
 public:
  explicit gpu_levels(runtime&) {}

  // Records the changed number. Without memory for it, the trace lacks the event. Thread-safe.
  void change(trace& in, const std::string& stage, int by) noexcept;

 private:
  std::mutex mutex_;
  std::map<std::pair<trace*, std::string>, std::uint64_t> counts_;  // guarded by mutex_; none is 0
};

// A piece of work of the calling coroutine's stage, in flight on a GPU during the object's
// lifetime. It is recorded as a level of the run's trace, if there is one. The run must outlive it.
class gpu_work {
 public:
  explicit gpu_work(const context& current);
  gpu_work(const gpu_work&) = delete;
  ~gpu_work();

 private:
  trace* in_ = nullptr;  // null: nothing is recorded
  gpu_levels* levels_ = nullptr;
  std::string stage_;
};

}  // namespace lade::cuda
