// Sources, gates and loops for tests of pipelines.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/failure.hpp>
#include <lade/merge.hpp>
#include <lade/pipeline.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "seed.hpp"

namespace lade::test {

// Yields 0, 1, 2, ... up to `end` - 1; without end if `end` is negative.
inline async_generator<int> count_to(int end) {
  for (int i = 0; i != end; ++i) {
    int item = i;
    co_yield item;
  }
}

struct numbers {
  int end;
  async_generator<int> operator()() const { return count_to(end); }
};

inline std::vector<int> up_to(int end) {
  std::vector<int> all(static_cast<std::size_t>(end));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

inline std::vector<int> sorted(std::vector<int> items) {
  std::ranges::sort(items);
  return items;
}

template <class T>
std::vector<T> collect(run<T>& items) {
  std::vector<T> all;
  for (auto& item : items) all.push_back(std::move(item));
  return all;
}

template <class T>
std::vector<T> collect(runtime& where, const pipeline<T>& what, const run_options& options = {}) {
  auto items = where.run(what, options);
  return collect(items);
}

// A stage that a function attaches, so that a test can choose it at run time.
template <class T>
struct any_stage {
  std::function<pipeline<T>(const pipeline<T>&)> add;
  pipeline<T> attach(const pipeline<T>& in) const { return add(in); }
};

// An item that can be moved. A copy of it throws.
class fragile {
 public:
  explicit fragile(int number) : number_(number) {}
  fragile(const fragile&) { throw std::runtime_error("no copy"); }
  fragile& operator=(const fragile&) { throw std::runtime_error("no copy"); }
  fragile(fragile&&) = default;
  fragile& operator=(fragile&&) = default;

  std::string key() const { return "f" + std::to_string(number_); }

 private:
  int number_;
};

inline fragile make_fragile(int number) { return fragile(number); }

// Runs the pipeline to its end. Returns the text of its failure; empty if it has no failure, or if
// the run has recorded several.
template <class T>
std::string only_failure(runtime& where, const pipeline<T>& what) {
  auto items = where.run(what);
  try {
    collect(items);
  } catch (const stage_error& failure) {
    if (items.failures().size() == 1) return failure.what();
  }
  return {};
}

// Yields the thread `turns` times.
inline void pause(int turns) {
  for (; turns > 0; --turns) std::this_thread::yield();
}

// Computes for 2 microseconds, longer than a limit of one.
inline void outlast_a_microsecond() {
  auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(2);
  while (std::chrono::steady_clock::now() <= end) {}
}

template <class Condition>
void wait_until(Condition condition) {
  while (!condition()) std::this_thread::yield();
}

// Yields 0, 1, 2, ... without end. `taken`: number of items taken from it.
inline async_generator<int> counted(std::atomic<int>& taken) {
  for (int i = 0;; ++i) {
    ++taken;
    int item = i;
    co_yield item;
  }
}

// Blocks the threads that pass it until it is opened.
class gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait_for(int threads) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_ >= threads; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  bool open_ = false;
};

// Counts callers between enter() and leave(): `inside` now, `most` at any time so far.
class occupancy {
 public:
  void enter() {
    auto now = ++inside_;
    auto most = most_.load();
    while (most < now && !most_.compare_exchange_weak(most, now)) {}
  }
  void leave() { --inside_; }
  int inside() const { return inside_; }
  int most() const { return most_; }

 private:
  std::atomic<int> inside_ = 0;
  std::atomic<int> most_ = 0;
};

// The weights are for merge_order::weighted; the other orders refuse them.
inline merge_options merged_in(merge_order order, std::vector<double> weights,
                               std::uint64_t seed = 0) {
  merge_options options{.order = order};
  if (order == merge_order::weighted) options.seed = seed;
  if (order == merge_order::weighted) options.weights = std::move(weights);
  return options;
}

}  // namespace lade::test
