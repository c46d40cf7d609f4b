#include "../../cuda/nvtx_api.hpp"

#include <lade/cuda/nvtx.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sleep.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace lade::cuda::nvtx_test {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

// The ranges that a profiler would have recorded.
struct recorded_ranges {
  std::mutex mutex;
  std::map<nvtxRangeId_t, std::string> open;
  std::vector<std::string> ended;
  nvtxRangeId_t last = 0;
  int domains = 0;
};
static recorded_ranges* recorded = nullptr;

static nvtx_api recording_api() {
  nvtx_api api;
  api.domain_create = [](const char* name) {
    EXPECT_STREQ(name, "lade");
    ++recorded->domains;
    return reinterpret_cast<nvtxDomainHandle_t>(recorded);
  };
  api.domain_destroy = [](nvtxDomainHandle_t) { --recorded->domains; };
  api.range_start = [](nvtxDomainHandle_t, const nvtxEventAttributes_t* attributes) {
    std::lock_guard lock(recorded->mutex);
    recorded->open[++recorded->last] = attributes->message.ascii;
    return recorded->last;
  };
  api.range_end = [](nvtxDomainHandle_t, nvtxRangeId_t range) {
    std::lock_guard lock(recorded->mutex);
    recorded->ended.push_back(recorded->open.at(range));
    recorded->open.erase(range);
  };
  return api;
}

static int square(int value) { return value * value; }

static task<int> slow_square(int value) {
  co_await sleep(std::chrono::microseconds(value % 7));
  co_return value* value;
}

TEST(NvtxHooks, MarkStagesAndCalls) {
  recorded_ranges ranges;
  recorded = &ranges;
  auto api = recording_api();
  {
    nvtx_hooks hooks(api);
    runtime runtime({.threads = 2});
    auto squares = from(std::vector{1, 2, 3}) | map(square, {.concurrency = 2, .name = "square"});
    for (auto& each : runtime.run(squares, {.hooks = &hooks})) EXPECT_GT(each, 0);
    EXPECT_EQ(ranges.domains, 1);
  }
  EXPECT_EQ(ranges.domains, 0);
  EXPECT_THAT(ranges.open, IsEmpty());
  EXPECT_THAT(ranges.ended,
              UnorderedElementsAre("source", "square", "square 1", "square 2", "square 3"));
}

TEST(NvtxHooks, EndTheRangesOfTasksThatEndInAnotherOrder) {
  recorded_ranges ranges;
  recorded = &ranges;
  auto api = recording_api();
  {
    nvtx_hooks hooks(api);
    runtime runtime({.threads = 2});
    std::vector<int> numbers(100);
    for (int i = 0; i < 100; ++i) numbers[static_cast<std::size_t>(i)] = i;
    auto squares = from(numbers) | map(slow_square, {.concurrency = 8, .name = "slow"});
    int seen = 0;
    for ([[maybe_unused]] auto& each : runtime.run(squares, {.hooks = &hooks})) ++seen;
    EXPECT_EQ(seen, 100);
  }
  EXPECT_THAT(ranges.open, IsEmpty());
  EXPECT_EQ(ranges.ended.size(), 102u);  // the calls, the stage and the source
}

TEST(NvtxHooks, DoNothingWithoutAProfiler) {
  nvtx_hooks hooks;
  runtime runtime({.threads = 1});
  auto squares = from(std::vector{1, 2, 3}) | map(square, {.concurrency = 2});
  int sum = 0;
  for (auto& each : runtime.run(squares, {.hooks = &hooks})) sum += each;
  EXPECT_EQ(sum, 14);
}

}  // namespace lade::cuda::nvtx_test
