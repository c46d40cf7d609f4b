// What `automatic` reaches on simulated pipelines: beside it, every fixed concurrency of a grid,
// each long enough to count items. The best of them is what an exhaustive search finds.

#include <lade/lade.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench.hpp"

namespace {

using clock_type = std::chrono::steady_clock;
using namespace std::chrono_literals;

// How long a server takes for an item while it serves so many at a time.
using server = std::function<std::chrono::nanoseconds(int at_a_time, std::uint64_t item)>;

// Servers that are asked for every item, one after the other, and the concurrencies that are tried.
// `in_parts`: a server gives an item in parts, each of which is asked for when the one before has
// come.
struct simulation {
  std::string_view name;
  std::vector<server> servers;
  std::vector<unsigned> concurrencies;
  bool in_parts = false;
};

std::chrono::nanoseconds milliseconds(double count) {
  return std::chrono::nanoseconds(static_cast<long>(count * 1e6));
}

// As fast as one likes.
std::chrono::nanoseconds wide(int, std::uint64_t) { return milliseconds(20); }

// Serves 24 at a time; more wait for each other.
std::chrono::nanoseconds narrow(int at_a_time, std::uint64_t) {
  return milliseconds(5 * std::max(1.0, at_a_time / 24.0));
}

// Serves 40 at a time, and less the more there are beyond.
std::chrono::nanoseconds crowded(int at_a_time, std::uint64_t) {
  auto beyond = std::max(0, at_a_time - 40) / 40.0;
  return milliseconds(8 * (1 + beyond) * (1 + beyond));
}

// One item in twenty takes fifteen times as long.
std::chrono::nanoseconds uneven(int, std::uint64_t item) {
  return milliseconds(lade::random(item).below(20) == 0 ? 60 : 4);
}

const std::vector<unsigned> many{1, 2, 4, 8, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 192, 256};
const std::vector<unsigned> some{8, 16, 24, 48, 96, 192};
const simulation simulations[] = {{"wide", {wide}, many},
                                  {"narrow", {narrow}, many},
                                  {"crowded", {crowded}, many},
                                  {"uneven", {uneven}, many},
                                  {"narrow, then wide", {narrow, wide}, some},
                                  {"wide, in parts", {wide}, many, true},
                                  {"narrow, in parts", {narrow}, many, true}};

lade::task<std::uint64_t> ask(const server& asked, std::atomic<int>& inside, std::uint64_t item) {
  auto at_a_time = ++inside;
  co_await lade::sleep(asked(at_a_time, item));
  --inside;
  co_return item;
}

lade::async_generator<std::uint64_t> ask_for_parts(const server& asked, std::atomic<int>& inside,
                                                   std::uint64_t item) {
  for (int part = 0; part < 4; ++part) {
    auto made = co_await ask(asked, inside, item);
    co_yield made;
  }
}

lade::pipeline<std::uint64_t> behind(const lade::pipeline<std::uint64_t>& in, const server& asked,
                                     std::atomic<int>& inside, unsigned concurrency,
                                     bool in_parts) {
  if (in_parts)
    return in |
           lade::flat_map([&](std::uint64_t item) { return ask_for_parts(asked, inside, item); },
                          {.concurrency = concurrency});
  return in | lade::map([&](std::uint64_t item) { return ask(asked, inside, item); },
                        {.concurrency = concurrency});
}

std::uint64_t without_end(std::uint64_t position) { return position; }

// Items in a second, from `begin` to `end` after the start of the run, with a concurrency for each
// server.
double rate(const simulation& all, const std::vector<unsigned>& concurrency,
            clock_type::duration begin, clock_type::duration end) {
  lade::runtime runtime;
  std::deque<std::atomic<int>> inside(all.servers.size());
  lade::pipeline<std::uint64_t> asking = lade::from_index(std::uint64_t{1} << 40, without_end);
  for (std::size_t i = 0; i < all.servers.size(); ++i)
    asking = behind(asking, all.servers[i], inside[i], concurrency[i], all.in_parts);
  auto items = runtime.run(asking);
  auto started = clock_type::now();
  std::size_t count = 0;
  while (clock_type::now() - started < end) {
    bool counts = clock_type::now() - started >= begin;
    if (items.wait_next() && counts) ++count;
  }
  return static_cast<double>(count) / std::chrono::duration<double>(end - begin).count();
}

// Every way to give each of the servers one of the concurrencies.
std::vector<std::vector<unsigned>> settings_of(const simulation& all) {
  std::vector<std::vector<unsigned>> settings(1);
  for (std::size_t i = 0; i < all.servers.size(); ++i) {
    std::vector<std::vector<unsigned>> longer;
    for (auto& setting : settings)
      for (auto each : all.concurrencies) {
        longer.push_back(setting);
        longer.back().push_back(each);
      }
    settings = std::move(longer);
  }
  return settings;
}

std::string text_of(const std::vector<unsigned>& setting) {
  std::string text;
  for (auto each : setting) text += (text.empty() ? "" : ", ") + std::to_string(each);
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "automatic concurrency and the best fixed one");
  auto converge = std::chrono::seconds(options.number("converge", 10, "seconds before it counts"));
  auto counted = std::chrono::milliseconds(options.number("count", 2000, "ms that are counted"));
  options.done();
  for (auto& each : simulations) {
    std::vector<unsigned> best_at;
    double best = 0;
    for (auto& fixed : settings_of(each)) {
      auto now = rate(each, fixed, 300ms, 300ms + counted / 2);
      if (now > best) best_at = fixed;
      best = std::max(best, now);
    }
    auto stages = each.servers.size();
    auto by_default = rate(each, std::vector<unsigned>(stages, 16), 300ms, 300ms + counted / 2);
    std::vector<unsigned> automatic(stages, lade::automatic);
    auto tuned = rate(each, automatic, converge, converge + counted);
    auto while_converging = rate(each, automatic, 0ms, converge);
    bench::report(each.name)
        .add("automatic_per_s", tuned)
        .add("best_per_s", best)
        .add("best_at", text_of(best_at))
        .add("of_best", tuned / best)
        .add("converging_of_default", while_converging / by_default)
        .print();
  }
}
