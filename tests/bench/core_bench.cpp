// What lade's coroutines cost, by operation. Every figure is the median of several passes; figures
// between threads depend on where the kernel puts them and mean something only beside core_floor
// and asio_floor in the same run.

#include <time.h>

#include <lade/lade.hpp>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

#include "bench.hpp"

namespace {

using lade::async_generator;
using lade::task;

void expect(bool holds, const char* what) {
  if (!holds) bench::fail(what);
}

task<std::size_t> number(std::size_t n) { co_return n; }

task<> add_up(std::size_t items, std::size_t& sum) {
  for (std::size_t i = 0; i < items; ++i) sum += co_await number(i);
}

void await(std::size_t items) {
  std::size_t sum = 0;
  sync_wait(add_up(items, sum));
  expect(sum == items * (items - 1) / 2, "an await lost its value");
}

async_generator<std::size_t> numbers(std::size_t end) {
  for (std::size_t i = 0; i < end; ++i) co_yield i;
}

task<std::size_t> count(async_generator<std::size_t> in) {
  std::size_t items = 0;
  while (co_await in.next()) ++items;
  co_return items;
}

void generator(std::size_t items) {
  expect(sync_wait(count(numbers(items))) == items, "the generator lost an item");
}

async_generator<std::size_t> source(std::size_t end) {
  for (std::size_t i = 0; i < end; ++i) {
    lade::detail::positioned<std::size_t> item{i, i};
    co_yield item;
  }
}

async_generator<std::size_t> incremented(async_generator<std::size_t> in) {
  while (auto item = co_await in.next()) co_yield *item + 1;
}

async_generator<std::size_t> doubled(async_generator<std::size_t> in) {
  while (auto item = co_await in.next()) co_yield *item * 2;
}

task<> check_origins(async_generator<std::size_t> in, std::size_t& items) {
  while (auto item = co_await in.next())
    items += in.origin().ranges().front().first == *item / 2 - 1;
}

// A source and two stages, each item with the position it came from.
void generator_chain(std::size_t items) {
  std::size_t right = 0;
  sync_wait(check_origins(doubled(incremented(source(items))), right));
  expect(right == items, "an item lost its lineage");
}

task<> await_tens(std::size_t items, std::size_t& sum) {
  for (std::size_t i = 0; i < items; i += 10) {
    auto ten = co_await when_all(number(0), number(1), number(2), number(3), number(4), number(5),
                                 number(6), number(7), number(8), number(9));
    std::apply([&sum](auto... each) { sum += (each + ...); }, ten);
  }
}

void when_all_of_ten(std::size_t items) {
  std::size_t sum = 0;
  sync_wait(await_tens(items, sum));
  expect(sum == items / 10 * 45, "when_all lost a value");
}

task<> await_vectors(std::size_t items, std::size_t& sum) {
  for (std::size_t i = 0; i < items; i += 10) {
    std::vector<task<std::size_t>> ten;
    ten.reserve(10);
    for (std::size_t k = 0; k < 10; ++k) ten.push_back(number(k));
    auto values = co_await when_all(std::move(ten));
    sum += std::accumulate(values.begin(), values.end(), std::size_t{0});
  }
}

void when_all_vector(std::size_t items) {
  std::size_t sum = 0;
  sync_wait(await_vectors(items, sum));
  expect(sum == items / 10 * 45, "when_all lost a value");
}

template <class T>
task<> consume(lade::channel<T>& from, std::size_t& items) {
  while (auto value = co_await from.pop()) {
    if constexpr (requires { value->size(); })
      items += value->size();
    else
      ++items;
  }
}

task<> produce(lade::channel<std::size_t>& to, std::size_t items) {
  for (std::size_t i = 0; i < items; ++i) co_await to.push(i);
  to.close();
}

constexpr std::size_t batch = 32;

task<> produce_batches(lade::channel<std::vector<std::size_t>>& to, std::size_t items) {
  for (std::size_t i = 0; i < items; i += batch) {
    std::vector<std::size_t> values;
    values.reserve(batch);
    for (std::size_t k = 0; k < batch; ++k) values.push_back(i + k);
    co_await to.push(std::move(values));
  }
  to.close();
}

task<> both(task<> first, task<> second) { co_await when_all(std::move(first), std::move(second)); }

void channel(std::size_t items) {
  lade::channel<std::size_t> places(64);
  std::size_t popped = 0;
  sync_wait(both(produce(places, items), consume(places, popped)));
  expect(popped == items, "the channel lost an item");
}

// Awaits `work` on a pool.
task<> on(const lade::context& there, task<> work) {
  co_await lade::continue_on(*there.home);
  co_await lade::with_context(there, std::move(work));
}

// A producer and a consumer, each on a pool of one thread.
template <class T>
void between_threads(task<> (*producer)(lade::channel<T>&, std::size_t), std::size_t items) {
  lade::thread_pool here({.threads = 1}), there({.threads = 1});
  lade::context at_here, at_there;
  at_here.home = &here;
  at_there.home = &there;
  lade::channel<T> places(64);
  std::size_t popped = 0;
  sync_wait(both(on(at_here, producer(places, items)), on(at_there, consume(places, popped))));
  expect(popped == items, "the channel lost an item");
}

void channel_threads(std::size_t items) { between_threads(produce, items); }

void channel_batches(std::size_t items) { between_threads(produce_batches, items / batch * batch); }

task<> increment(std::atomic<std::size_t>& done) {
  done.fetch_add(1, std::memory_order_relaxed);
  co_return;
}

task<> spawn_all(lade::thread_pool& pool, std::size_t items, std::atomic<std::size_t>& done) {
  lade::context execution;
  execution.home = &pool;
  lade::scope children(execution);
  for (std::size_t i = 0; i < items; ++i) children.start(increment(done));
  co_await children.join();
}

void spawn_join(std::size_t items) {
  lade::thread_pool pool({.threads = 2});
  std::atomic<std::size_t> done = 0;
  sync_wait(spawn_all(pool, items, done));
  expect(done == items, "the scope lost a child");
}

std::size_t nothing(std::size_t item) { return item; }

lade::pipeline<std::size_t> mapped(std::size_t items, unsigned slots) {
  return lade::from(std::views::iota(std::size_t{0}, items)) |
         lade::map(nothing, {.concurrency = 2, .buffer = slots - 2});
}

// The stage, saturated: what it gives is taken as fast as it comes, by the stage behind it.
void map(std::size_t items, unsigned slots) {
  lade::runtime runtime({.threads = 2});
  std::size_t received = 0;
  for (auto& thousand : runtime.run(mapped(items, slots) | lade::batch(1000)))
    received += thousand.size();
  expect(received == items, "the map lost an item");
}

void map_64(std::size_t items) { map(items, 64); }

void map_8(std::size_t items) { map(items, 8); }

// The same, and each item is handed to the thread of the loop by itself.
void map_delivered(std::size_t items, unsigned slots) {
  lade::runtime runtime({.threads = 2});
  std::size_t received = 0;
  for (auto& item : runtime.run(mapped(items, slots), {.ready = slots})) received += item < items;
  expect(received == items, "the map lost an item");
}

void map_64_delivered(std::size_t items) { map_delivered(items, 64); }

void map_8_delivered(std::size_t items) { map_delivered(items, 8); }

task<> go_to_and_fro(lade::thread_pool& here, lade::thread_pool& there, std::size_t hops) {
  for (std::size_t i = 0; i < hops; i += 2) {
    co_await lade::continue_on(here);
    co_await lade::continue_on(there);
  }
}

// A coroutine that goes from one sleeping thread to another and back.
void hand_off(std::size_t items) {
  lade::thread_pool here({.threads = 1}), there({.threads = 1});
  sync_wait(go_to_and_fro(here, there, items));
}

struct figure {
  std::string_view name;
  void (*measure)(std::size_t items);
  std::size_t divisor;  // of the number of items, for what takes long
};

constexpr figure figures[] = {
    {"await", await, 1},
    {"generator", generator, 1},
    {"generator_chain", generator_chain, 1},
    {"when_all", when_all_of_ten, 1},
    {"when_all_vector", when_all_vector, 1},
    {"channel", channel, 1},
    {"channel_threads", channel_threads, 4},
    {"channel_batches", channel_batches, 1},
    {"spawn_join", spawn_join, 1},
    {"map_64", map_64, 10},
    {"map_8", map_8, 10},
    {"map_64_delivered", map_64_delivered, 10},
    {"map_8_delivered", map_8_delivered, 10},
    {"hand_off", hand_off, 10},
};

double seconds(clockid_t clock) {
  timespec now;
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void measure(const figure& what, std::size_t items, std::size_t passes) {
  std::vector<double> wall, cpu;
  for (std::size_t i = 0; i < passes; ++i) {
    double wall_began = seconds(CLOCK_MONOTONIC);
    double cpu_began = seconds(CLOCK_PROCESS_CPUTIME_ID);
    what.measure(items);
    cpu.push_back((seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_began) * 1e9);
    wall.push_back((seconds(CLOCK_MONOTONIC) - wall_began) * 1e9);
  }
  bench::report(what.name)
      .add("items", items)
      .add("wall_ns", bench::median(wall) / static_cast<double>(items))
      .add("cpu_ns", bench::median(cpu) / static_cast<double>(items))
      .print();
}

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "Awaits, generators, channels and pools: ns for each item.");
  auto items = options.number("items", 1'000'000, "items; a tenth of them where each takes long");
  auto passes = options.number("passes", 5, "passes, of which the median is printed");
  std::string names = "all";
  for (auto& each : figures) names.append("|").append(each.name);
  auto only = options.choice("only", names, "what to measure");
  options.done();
  if (items < 1000 || passes == 0) bench::fail("--items wants at least 1000, --passes at least 1");
  for (auto& each : figures)
    if (only == "all" || only == each.name) measure(each, items / each.divisor, passes);
}
