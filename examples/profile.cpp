// Which stage is slow, and how many items should it work on at a time? Here one that waits for a
// server, and one that computes.

#include <lade/lade.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>

using namespace std::chrono_literals;

static lade::task<std::uint64_t> fetch(std::uint64_t page) {
  co_await lade::sleep(1ms);
  co_return page;
}

static std::uint64_t parse(std::uint64_t page) {
  auto end = std::chrono::steady_clock::now() + 2ms;
  while (std::chrono::steady_clock::now() < end) {}
  return page;
}

static std::uint64_t number(std::uint64_t index) { return index; }

int main() {
  lade::runtime runtime;
  auto pages = lade::from_index(1'000'000, number) |
               lade::map(fetch, {.concurrency = 16, .name = "fetch"}) |
               lade::map(parse, {.name = "parse"}) | lade::batch(16);
  auto stages = lade::profile(runtime, pages, {.items = 64});
  std::fputs(lade::table(stages).c_str(), stdout);

  // The same of a run while it lives: on the terminal, or line by line in a log.
  lade::run_options watched{.report = {.every = 200ms, .to = lade::dashboard()}};
  for (auto& batch : runtime.run(pages | lade::take(10), watched)) (void)batch;
}
