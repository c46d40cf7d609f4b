// The cost of saving the state of a run and of resuming from it. Shuffled items of a long list are
// delivered in the order in which they finish, so the delivered positions have gaps.

#include <lade/lade.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "bench.hpp"

static std::uint64_t number(std::uint64_t position) { return position; }

// Items finish out of order.
static lade::task<std::uint64_t> fetch(std::uint64_t item) {
  co_await lade::sleep(std::chrono::microseconds(lade::random(item).below(2000)));
  co_return item;
}

int main(int argc, char** argv) {
  bench::options options(argc, argv, "Time and size of the state of a run.");
  auto items = options.number("items", 100'000'000, "items of the list");
  auto taken = options.number("taken", 20'000, "items that are taken");
  auto in_flight = options.number("in-flight", 64, "items that are fetched at a time");
  options.done();
  lade::runtime runtime({.threads = 2});
  auto fetched = lade::from_index(items, number) | lade::shuffle({.seed = 1}) |
                 lade::map(fetch, {.concurrency = static_cast<unsigned>(in_flight),
                                   .order = lade::item_order::completion});
  auto run = runtime.run(fetched);
  std::vector<double> wall_us;
  std::size_t most_bytes = 0;
  for (std::size_t i = 0; i < taken && run.wait_next(); ++i) {
    bench::stopwatch clock;
    auto state = run.state();
    wall_us.push_back(clock.wall_s() * 1e6);
    most_bytes = std::max(most_bytes, to_json(state).size());
  }
  std::ranges::sort(wall_us);
  bench::report("state")
      .add("items", items)
      .add("p50_us", wall_us[wall_us.size() / 2])
      .add("p99_us", wall_us[wall_us.size() * 99 / 100])
      .add("json_bytes", most_bytes)
      .print();
}
