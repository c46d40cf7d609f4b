// How long after a function has returned the thread wakes that waits for its result: in a run, and
// with nothing but a condition variable. All take turns, a block of hand-offs each; the functions
// compute for a random time, so that whoever waits is asleep. A result that is there before the
// thread asks for it is no hand-off: where several may wait, one late wake would count many times.

#include <lade/lade.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bench.hpp"

namespace {

using clock_type = std::chrono::steady_clock;

constexpr int shortest_us = 50, longest_us = 250;

std::chrono::nanoseconds random_time(std::size_t number) {
  bench::random_stream draw(number);
  return std::chrono::nanoseconds(
      static_cast<long>(draw.between(shortest_us * 1e3, longest_us * 1e3)));
}

// Computes for a random time and records when it returned.
clock_type::time_point compute(std::size_t number) {
  auto until = clock_type::now() + random_time(number);
  auto now = clock_type::now();
  while (now < until) now = clock_type::now();
  return now;
}

lade::task<clock_type::time_point> wait(std::size_t number) {
  co_await lade::sleep(random_time(number));
  co_return clock_type::now();
}

class times {
 public:
  // The thread asks for the next result.
  void ask() { asked_ = clock_type::now(); }
  // It has got it.
  void note(clock_type::time_point returned) {
    if (returned < asked_) return;
    auto taken = clock_type::now() - returned;
    us_.push_back(std::chrono::duration<double, std::micro>(taken).count());
  }
  void print(std::string_view name) const {
    bench::report(name)
        .add("items", us_.size())
        .add("p50_us", bench::quantile(us_, 0.5))
        .add("p99_us", bench::quantile(us_, 0.99))
        .print();
  }

 private:
  clock_type::time_point asked_;
  std::vector<double> us_;
};

// A thread that computes and one that waits, with a place for one result between them.
void bare(std::size_t items, times& into) {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<clock_type::time_point> place;
  std::jthread producer([&] {
    for (std::size_t i = 0; i < items; ++i) {
      auto returned = compute(i);
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return !place; });
      place = returned;
      lock.unlock();
      changed.notify_one();
    }
  });
  for (std::size_t i = 0; i < items; ++i) {
    into.ask();
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return place.has_value(); });
    auto returned = *std::exchange(place, std::nullopt);
    lock.unlock();
    into.note(returned);
    changed.notify_one();
  }
}

template <class F>
void from_run(F function, const lade::map_options& options, std::size_t items, times& into) {
  lade::runtime runtime({.threads = 1});
  auto stamped = lade::from_index(items, [](std::uint64_t i) { return std::size_t{i}; }) |
                 lade::map(function, options);
  auto run = runtime.run(stamped, {.ready = 1});
  for (std::size_t i = 0; i < items; ++i) {
    into.ask();
    into.note(*run.wait_next());
  }
}

// The function is called by the coroutine that fills the run.
void in_place(std::size_t items, times& into) {
  from_run(compute, {.concurrency = 1}, items, into);
}

// By a worker, on the thread on which the next coroutine is at home.
void worker(std::size_t items, times& into) { from_run(compute, {.concurrency = 2}, items, into); }

// On other threads than that.
void own_pool(std::size_t items, times& into) {
  lade::thread_pool pool({.threads = 1});
  from_run(compute, {.concurrency = 1, .pool = &pool}, items, into);
}

// A task, on the reactor.
void task(std::size_t items, times& into) { from_run(wait, {.concurrency = 1}, items, into); }

struct figure {
  std::string_view name;
  void (*measure)(std::size_t items, times& into);
};

constexpr figure figures[] = {{"bare", bare},
                              {"in_place", in_place},
                              {"from_a_worker", worker},
                              {"from_a_pool_of_its_own", own_pool},
                              {"task", task}};

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "Time from a function's return to the wake of who waits.");
  auto items = options.number("items", 5000, "hand-offs of each kind");
  auto block = options.number("block", 250, "of them in one turn");
  options.done();
  if (block == 0 || items < block) bench::fail("--items wants at least one --block");
  std::vector<times> results(std::size(figures));
  for (std::size_t done = 0; done < items; done += block)
    for (std::size_t i = 0; i < results.size(); ++i) figures[i].measure(block, results[i]);
  for (std::size_t i = 0; i < results.size(); ++i) results[i].print(figures[i].name);
}
