// Pipelines at their largest: a thousand stages deep, a million items in flight. Tells the peak of
// the process's memory, and what each item in flight takes beside itself.

#include <lade/lade.hpp>

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <new>
#include <ranges>
#include <string_view>

#include "bench.hpp"

namespace {

std::atomic<std::size_t> live_bytes = 0;

// What malloc takes for a piece of memory: what it gives out and the word before it.
std::size_t taken_by(void* memory) { return ::malloc_usable_size(memory) + sizeof(std::size_t); }

}  // namespace

void* operator new(std::size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  live_bytes.fetch_add(taken_by(memory), std::memory_order_relaxed);
  return memory;
}

void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  live_bytes.fetch_sub(taken_by(memory), std::memory_order_relaxed);
  std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept { ::operator delete(memory); }

namespace {

std::size_t nothing(std::size_t item) { return item; }

auto numbers(std::size_t items) { return lade::from(std::views::iota(std::size_t{0}, items)); }

void print(std::string_view name, const bench::stopwatch& clock, std::size_t items) {
  bench::report(name)
      .add("items", items)
      .add("wall_s", clock.wall_s())
      .add("cpu_s", clock.cpu_s())
      .add("peak_rss_mib", bench::peak_rss_mib())
      .print();
}

void run_through_stages(std::size_t items, std::size_t stages) {
  lade::pipeline<std::size_t> deep = numbers(items);
  for (std::size_t i = 0; i < stages; ++i) deep = deep | lade::map(nothing, {.concurrency = 1});
  lade::runtime runtime({.threads = 2});
  bench::stopwatch clock;
  std::size_t received = 0;
  for (auto& thousand : runtime.run(deep | lade::batch(1000))) received += thousand.size();
  if (received != items) bench::fail("the stages lost an item");
  print("stages", clock, items);
}

std::size_t rss_bytes() {
  std::size_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// Memory per item in flight, without the item, since construction.
class memory_each {
 public:
  void print(std::string_view name, std::size_t items) const {
    auto each = [items](std::size_t bytes) {
      return static_cast<double>(bytes) / static_cast<double>(items) - sizeof(std::size_t);
    };
    bench::report(name)
        .add("items", items)
        .add("bytes_each", each(live_bytes - live_))
        .add("rss_bytes_each", each(rss_bytes() - rss_))
        .print();
  }

 private:
  std::size_t live_ = live_bytes;
  std::size_t rss_ = rss_bytes();
};

// Counts what is in flight; the main thread waits until it is everything.
class gathering {
 public:
  explicit gathering(std::size_t items) : items_(items) {}
  void come() {
    if (++here_ == items_) here_.notify_one();
  }
  void wait() const {
    for (std::size_t seen = 0; (seen = here_) < items_;) here_.wait(seen);
  }

 private:
  std::size_t items_;
  std::atomic<std::size_t> here_ = 0;
};

void take_all(lade::run<std::size_t>& run, std::size_t items) {
  std::size_t received = 0;
  for (auto& item : run) received += item < items;
  if (received != items) bench::fail("an item in flight was lost");
}

// Finished items that all wait in the slots of one stage.
void fill_slots(std::size_t items) {
  gathering finished(items);
  auto come = [&finished](std::size_t item) {
    finished.come();
    return item;
  };
  auto buffer = static_cast<unsigned>(items - 2);
  auto held = numbers(items) | lade::map(come, {.concurrency = 2, .buffer = buffer});
  lade::runtime runtime({.threads = 2});
  bench::stopwatch clock;
  memory_each memory;
  auto run = runtime.run(held);
  finished.wait();
  memory.print("slots_memory", items);
  take_all(run, items);
  print("slots", clock, items);
}

lade::task<std::size_t> come_and_wait(gathering& started, lade::event& all, std::size_t item) {
  started.come();
  co_await all;
  co_return item;
}

// Tasks that have all been started and wait for one event.
void start_tasks(std::size_t items) {
  gathering started(items);
  lade::event all;
  auto wait = [&](std::size_t item) { return come_and_wait(started, all, item); };
  auto concurrency = static_cast<unsigned>(items);
  auto held = numbers(items) | lade::map(wait, {.concurrency = concurrency, .buffer = 0});
  lade::runtime runtime({.threads = 2});
  bench::stopwatch clock;
  memory_each memory;
  auto run = runtime.run(held);
  started.wait();
  memory.print("tasks_memory", items);
  all.set();
  take_all(run, items);
  print("tasks", clock, items);
}

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "A thousand stages, or a million items in flight.");
  auto what = options.choice("what", "stages|slots|tasks",
                             "items through many stages; items that wait in the slots of one "
                             "stage; tasks that wait at the same time");
  auto items = options.number("items", 1'000'000, "items");
  auto stages = options.number("stages", 1000, "stages that the items go through");
  options.done();
  if (items < 1000) bench::fail("--items wants at least 1000");
  if (what == "stages") run_through_stages(items, stages);
  if (what == "slots") fill_slots(items);
  if (what == "tasks") start_tasks(items);
}
