// What `automatic` reaches on simulated pipelines: beside it, every fixed concurrency of a grid,
// each long enough to count items. The best of them is what an exhaustive search finds.

#include <lade/lade.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "bench.hpp"

namespace {

using clock_type = std::chrono::steady_clock;
using namespace std::chrono_literals;

// A server that is asked for an item: how long it takes while it serves so many at a time.
struct server {
  std::string_view name;
  std::function<std::chrono::nanoseconds(int at_a_time, std::uint64_t item)> time;
};

std::chrono::nanoseconds milliseconds(double count) {
  return std::chrono::nanoseconds(static_cast<long>(count * 1e6));
}

const server servers[] = {
    // As fast as one likes.
    {"wide", [](int, std::uint64_t) { return milliseconds(20); }},
    // Serves 24 at a time; more wait for each other.
    {"narrow", [](int at_a_time,
                  std::uint64_t) { return milliseconds(5 * std::max(1.0, at_a_time / 24.0)); }},
    // Serves 40 at a time, and less the more there are beyond.
    {"crowded",
     [](int at_a_time, std::uint64_t) {
       auto beyond = std::max(0, at_a_time - 40) / 40.0;
       return milliseconds(8 * (1 + beyond) * (1 + beyond));
     }},
    // One item in twenty takes fifteen times as long.
    {"uneven",
     [](int, std::uint64_t item) {
       return milliseconds(lade::random(item).below(20) == 0 ? 60 : 4);
     }},
};

struct counts {
  std::atomic<int> inside = 0;
};

lade::task<std::uint64_t> ask(const server& asked, counts& now, std::uint64_t item) {
  auto at_a_time = ++now.inside;
  co_await lade::sleep(asked.time(at_a_time, item));
  --now.inside;
  co_return item;
}

std::uint64_t without_end(std::uint64_t position) { return position; }

// Items in a second, from `begin` to `end` after the run has begun.
double rate(const server& asked, unsigned concurrency, clock_type::duration begin,
            clock_type::duration end) {
  lade::runtime runtime;
  counts now;
  auto fetch = [&](std::uint64_t item) { return ask(asked, now, item); };
  auto items = runtime.run(lade::from_index(std::uint64_t{1} << 40, without_end) |
                           lade::map(fetch, {.concurrency = concurrency}));
  auto started = clock_type::now();
  std::size_t count = 0;
  while (clock_type::now() - started < end) {
    bool counts = clock_type::now() - started >= begin;
    if (items.wait_next() && counts) ++count;
  }
  return static_cast<double>(count) / std::chrono::duration<double>(end - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "automatic concurrency and the best fixed one");
  auto converge = std::chrono::seconds(options.number("converge", 10, "seconds before it counts"));
  auto counted = std::chrono::milliseconds(options.number("count", 2000, "ms that are counted"));
  options.done();
  constexpr unsigned standard = 16;
  for (auto& each : servers) {
    double best = 0;
    double by_default = 0;
    std::size_t best_at = 0;
    for (unsigned fixed :
         {1u, 2u, 4u, 8u, 12u, 16u, 20u, 24u, 32u, 40u, 48u, 64u, 96u, 128u, 192u, 256u}) {
      auto now = rate(each, fixed, 300ms, 300ms + counted / 2);
      if (fixed == standard) by_default = now;
      if (now > best) best_at = fixed;
      best = std::max(best, now);
    }
    auto tuned = rate(each, lade::automatic, converge, converge + counted);
    auto while_converging = rate(each, lade::automatic, 0ms, converge);
    bench::report(each.name)
        .add("automatic_per_s", tuned)
        .add("best_per_s", best)
        .add("best_at", best_at)
        .add("of_best", tuned / best)
        .add("converging_of_default", while_converging / by_default)
        .print();
  }
}
