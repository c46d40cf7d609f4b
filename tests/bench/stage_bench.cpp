// What a stage costs an item: the difference between two pipelines of which one has more stages, so
// that source and sink do not count. The functions of the stages do nothing.

#include <lade/lade.hpp>

#include <chrono>
#include <ranges>
#include <string_view>
#include <vector>

#include "bench.hpp"

namespace {

struct kind {
  lade::map_options options;
  std::size_t few, many;  // stages of the two pipelines
  std::size_t divisor;    // of the number of items, for what takes long
};

const kind sequential{{.concurrency = 1}, 1, 11, 1};
const kind concurrent{{.concurrency = 2, .buffer = 62}, 1, 5, 10};

std::size_t nothing(std::size_t item) { return item; }

lade::pipeline<std::size_t> stages(const kind& of, std::size_t count, std::size_t items) {
  lade::pipeline<std::size_t> made = lade::from(std::views::iota(std::size_t{0}, items));
  for (std::size_t i = 0; i < count; ++i) made = made | lade::map(nothing, of.options);
  return made;
}

// Reports of a run, beside the statistics that every run keeps.
lade::run_options quiet() { return {}; }

lade::run_options reporting() {
  lade::run_options options;
  options.report = {.every = std::chrono::milliseconds(100), .to = [](const lade::run_report&) {}};
  return options;
}

lade::run_options tracing() {
  static lade::trace nowhere("/dev/null");
  lade::run_options options;
  options.trace = &nowhere;
  return options;
}

lade::run_options hooked() {
  static lade::run_hooks nothing_done;
  lade::run_options options;
  options.hooks = &nothing_done;
  return options;
}

struct figure {
  std::string_view name;
  const kind& stages;
  lade::run_options (*options)();
};

const figure figures[] = {
    {"sequential", sequential, quiet},           {"sequential_reporting", sequential, reporting},
    {"sequential_tracing", sequential, tracing}, {"sequential_hooked", sequential, hooked},
    {"concurrent", concurrent, quiet},           {"concurrent_reporting", concurrent, reporting},
    {"concurrent_tracing", concurrent, tracing}, {"concurrent_hooked", concurrent, hooked},
};

struct seconds {
  double wall, cpu;
};

seconds pass(const figure& what, std::size_t count, std::size_t items) {
  lade::runtime runtime({.threads = 2});
  auto thousands = stages(what.stages, count, items) | lade::batch(1000);
  auto options = what.options();
  std::size_t received = 0;
  bench::stopwatch clock;
  for (auto& thousand : runtime.run(thousands, options)) received += thousand.size();
  seconds taken{clock.wall_s(), clock.cpu_s()};
  if (received != items) bench::fail("the pipeline lost an item");
  return taken;
}

struct measured {
  std::vector<double> wall_ns, cpu_ns;
};

void measure(const figure& what, std::size_t items, measured& into) {
  items /= what.stages.divisor;
  auto few = pass(what, what.stages.few, items);
  auto many = pass(what, what.stages.many, items);
  auto more = static_cast<double>(items * (what.stages.many - what.stages.few));
  into.wall_ns.push_back((many.wall - few.wall) / more * 1e9);
  into.cpu_ns.push_back((many.cpu - few.cpu) / more * 1e9);
}

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "Time of a stage that does nothing, for each item.");
  auto items = options.number("items", 1'000'000, "items; a tenth of them through queues");
  auto passes = options.number("passes", 5, "passes, of which the median is printed");
  options.done();
  if (items < 10'000 || passes == 0) bench::fail("--items wants 10000 or more, --passes 1 or more");
  std::vector<measured> results(std::size(figures));
  for (std::size_t i = 0; i < passes; ++i)
    for (std::size_t k = 0; k < results.size(); ++k) measure(figures[k], items, results[k]);
  for (std::size_t k = 0; k < results.size(); ++k)
    bench::report(figures[k].name)
        .add("wall_ns", bench::median(results[k].wall_ns))
        .add("cpu_ns", bench::median(results[k].cpu_ns))
        .print();
}
