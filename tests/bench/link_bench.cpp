// What each stage that is made of a link takes for an item. The functions do nothing.

#include <lade/lade.hpp>

#include <cstddef>
#include <functional>
#include <ranges>
#include <string_view>
#include <tuple>
#include <vector>

#include "bench.hpp"

namespace {

using lade::pipeline;

pipeline<int> numbers(std::size_t count) {
  return lade::from(std::views::iota(0, static_cast<int>(count)));
}

int same(int i) { return i; }

template <int Count>
std::vector<int> parts(int i) {
  return std::vector<int>(Count, i);
}

pipeline<int> split_into(std::size_t items, lade::item_order order) {
  return numbers(items / 8) | lade::flat_map(parts<8>, {.concurrency = 4, .order = order});
}

pipeline<int> teed(std::size_t items) {
  auto path = lade::map(same, {.concurrency = 1});
  auto first = [](const std::tuple<int, int>& both) { return std::get<0>(both); };
  return numbers(items) | lade::tee(path, path) | lade::map(first, {.concurrency = 1});
}

pipeline<int> routed(std::size_t items) {
  auto path = lade::map(same, {.concurrency = 1});
  return numbers(items) | lade::route([](int i) { return i % 2; }, path, path);
}

pipeline<int> merged(std::size_t items) {
  return lade::merge(std::vector{numbers(items / 2), numbers(items / 2)},
                     {.order = lade::merge_order::arrival});
}

// A pipeline that yields so many items.
struct figure {
  std::string_view name;
  std::function<pipeline<int>(std::size_t items)> stage;
};

const figure figures[] = {
    {"source", numbers},
    {"prefetch", [](std::size_t items) { return numbers(items) | lade::prefetch(64); }},
    {"map", [](std::size_t items) { return numbers(items) | lade::map(same, {.concurrency = 4}); }},
    {"map_completion",
     [](std::size_t items) {
       const lade::map_options options{.concurrency = 4, .order = lade::item_order::completion};
       return numbers(items) | lade::map(same, options);
     }},
    {"flat_map", [](std::size_t items) { return split_into(items, lade::item_order::input); }},
    {"flat_map_completion",
     [](std::size_t items) { return split_into(items, lade::item_order::completion); }},
    {"flat_map_of_one",
     [](std::size_t items) {
       return numbers(items) | lade::flat_map(parts<1>, {.concurrency = 4});
     }},
    {"merge", merged},
    {"route", routed},
    {"tee", teed},
};

struct measured {
  std::vector<double> wall_ns, cpu_ns;
};

void measure(const figure& what, unsigned threads, std::size_t items, measured& into) {
  lade::runtime runtime({.threads = threads});
  std::size_t received = 0;
  bench::stopwatch clock;
  for (auto& thousand : runtime.run(what.stage(items) | lade::batch(1000)))
    received += thousand.size();
  into.wall_ns.push_back(clock.wall_s() / static_cast<double>(items) * 1e9);
  into.cpu_ns.push_back(clock.cpu_s() / static_cast<double>(items) * 1e9);
  if (received != items) bench::fail("the pipeline lost an item");
}

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "Time of each stage that works ahead, for each item.");
  auto threads = static_cast<unsigned>(options.number("threads", 1, "threads of the CPU pool"));
  auto items = options.number("items", 200'000, "items of a pass, a multiple of 8");
  auto passes = options.number("passes", 5, "passes, of which the median is printed");
  options.done();
  if (items == 0 || items % 8 != 0 || passes == 0)
    bench::fail("--items wants a multiple of 8, --passes 1 or more");
  for (auto& each : figures) {
    measured all;
    for (std::size_t pass = 0; pass < passes; ++pass) measure(each, threads, items, all);
    bench::report(each.name)
        .add("wall_ns", bench::median(all.wall_ns))
        .add("cpu_ns", bench::median(all.cpu_ns))
        .print();
  }
}
