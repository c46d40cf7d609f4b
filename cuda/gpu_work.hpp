// What stages do on a GPU, in the trace of a run.

#pragma once

#include <lade/context.hpp>
#include <lade/runtime.hpp>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace lade::cuda {

// How many pieces of work of each stage GPUs have; a service of the runtime.
class gpu_levels {
 public:
  explicit gpu_levels(runtime&) {}

  // A trace that has no memory for an event lacks it. Any thread.
  void change(trace& in, const std::string& stage, int by) noexcept;

 private:
  std::mutex mutex_;
  std::map<std::pair<trace*, std::string>, std::uint64_t> counts_;  // guarded; none is 0
};

// A piece of work of the calling coroutine's stage, which a GPU has as long as this lives: a level
// of the run's trace, if it has one. The run must outlive it.
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
