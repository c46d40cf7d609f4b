// Stages that do nothing, each item handed to the thread of the loop by itself: what
// peers/spdl_engine.py does with SPDL's engine.

#include <lade/lade.hpp>

#include <ranges>

#include "bench.hpp"

static std::size_t nothing(std::size_t item) { return item; }

int main(int argc, char** argv) {
  bench::options options(argc, argv, "Items a second through stages that do nothing.");
  auto items = options.number("items", 1'000'000, "items");
  auto stages = options.number("stages", 1, "stages");
  auto concurrency = options.number("concurrency", 1, "of each stage, and threads");
  options.done();
  auto threads = static_cast<unsigned>(concurrency);
  lade::pipeline<std::size_t> made = lade::from(std::views::iota(std::size_t{0}, items));
  for (std::size_t i = 0; i < stages; ++i)
    made = made | lade::map(nothing, {.concurrency = threads});
  bench::stopwatch clock;
  std::size_t received = 0;
  {
    lade::runtime runtime({.threads = threads});
    for (auto& item : runtime.run(made, {.ready = 64})) received += item < items;
  }
  if (received != items) bench::fail("the pipeline lost an item");
  double wall = clock.wall_s(), cpu = clock.cpu_s(), count = static_cast<double>(items);
  bench::report("lade")
      .add("items", items)
      .add("concurrency", concurrency)
      .add("stages", stages)
      .add("wall_s", wall)
      .add("cpu_s", cpu)
      .add("items_per_s", count / wall)
      .add("items_per_cpu_s", count / cpu)
      .print();
}
