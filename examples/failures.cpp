// Failures and their policies: calls of a busy server are retried, a broken page is skipped, and
// too many broken pages end the run.

#include <lade/lade.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;

// Answers every second call.
static lade::task<std::string> fetch(std::uint64_t page) {
  static std::atomic<int> calls = 0;
  if (++calls % 2) throw std::runtime_error("busy");
  co_return page % 7 ? "page " + std::to_string(page) : "broken " + std::to_string(page);
}

static std::string parse(const std::string& page) {
  if (page.starts_with("broken")) throw std::invalid_argument("no page");
  return page;
}

static std::uint64_t number(std::uint64_t index) { return index; }

static void load(lade::runtime& runtime, const lade::error_budget& budget) {
  auto pages =
      lade::from_index(20, number) |
      lade::map(fetch,
                {.concurrency = 1, .retry = {.attempts = 5, .pause = 1ms}, .name = "fetch"}) |
      lade::map(parse, {.on_error = lade::on_error::skip, .name = "parse"});
  auto run = runtime.run(pages, {.error_budget = budget});
  int count = 0;
  for ([[maybe_unused]] auto& page : run) ++count;
  std::printf("%d pages, without\n", count);
  for (auto& failure : run.failures()) std::printf("  %s\n", to_json(failure).c_str());
}

int main() {
  lade::runtime runtime;
  load(runtime, {});
  try {
    load(runtime, {.count = 2});
  } catch (const std::exception& failure) {
    std::printf("%s\n", failure.what());
  }
}
