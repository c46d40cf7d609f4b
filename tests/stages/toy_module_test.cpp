#include <lade/cut.hpp>
#include <lade/description.hpp>
#include <lade/error.hpp>
#include <lade/failure.hpp>
#include <lade/from.hpp>
#include <lade/hooks.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sample.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>
#include <lade/trace.hpp>

#include "../support/pipelines.hpp"
#include "../support/temp_dir.hpp"
#include "../support/toy_module.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <any>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace lade::toy_module_test {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::SizeIs;
using testing::ThrowsMessage;
using testing::UnorderedElementsAre;

// Samples of these numbers of bytes.
static auto samples_of(std::vector<int> sizes) {
  return from(std::move(sizes)) | map([](int bytes) {
           return sample(std::to_string(bytes)).with_data(buffer(static_cast<std::size_t>(bytes)));
         });
}

static std::vector<std::int64_t> weights(run<sample>& items) {
  std::vector<std::int64_t> all;
  for (auto& each : items) all.push_back(each.label());
  return all;
}

class ToyModule : public testing::TestWithParam<reactor_kind> {
 protected:
  runtime where{{.threads = 2, .reactor = GetParam()}};
  std::shared_ptr<toy::scale_memory> memory = std::make_shared<toy::scale_memory>();
};
INSTANTIATE_TEST_SUITE_P(Both, ToyModule,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback));

TEST_P(ToyModule, WeighsInOrderAndReleasesItsMemory) {
  {
    runtime shorter({.threads = 2, .reactor = GetParam()});
    auto items = shorter.run(samples_of({5, 3, 8, 1, 9}) | toy::weigh(memory));
    EXPECT_THAT(weights(items), ElementsAre(5, 3, 8, 1, 9));
    EXPECT_GT(memory->in_use, 0u);  // kept by the runtime for later items
  }
  EXPECT_EQ(memory->in_use, 0u);
}

TEST_P(ToyModule, HasAFailurePolicyAndStatistics) {
  auto samples = samples_of({5, 0, 8});
  auto items = where.run(samples | toy::weigh(memory, on_error::skip));
  EXPECT_THAT(weights(items), ElementsAre(5, 8));
  auto stage = items.statistics().stages.back();
  EXPECT_EQ(stage.name, "weigh");
  EXPECT_EQ(stage.in, 3u);
  EXPECT_EQ(stage.failed, 1u);
  EXPECT_THAT([&] { test::collect(where, samples | toy::weigh(memory)); },
              ThrowsMessage<stage_error>(HasSubstr("weigh 0: it has no bytes")));
}

TEST_P(ToyModule, HasAState) {
  auto items = samples_of({5, 3, 8, 1, 9, 2}) | toy::weigh(memory);
  auto first = where.run(items);
  for (int i = 0; i < 2; ++i) first.wait_next();
  auto rest = where.run(items, {.state = first.state()});
  EXPECT_THAT(weights(rest), ElementsAre(8, 1, 9, 2));
}

TEST_P(ToyModule, ASourceIsReachedByIndex) {
  auto loads = from(toy::shelf("left", 100), {.name = "loads"}) | shuffle({.seed = 7}) |
               shard({.rank = 1, .world = 4}) | skip(5) | take(10) | repeat(2);
  EXPECT_EQ(loads.size(), 20u);
  auto items = where.run(loads | toy::weigh(memory), {.epoch = 3});
  auto all = weights(items);
  ASSERT_THAT(all, SizeIs(20));
  EXPECT_THAT(all, Each(AllOf(Ge(1), Le(100))));
  EXPECT_THAT(std::set(all.begin(), all.begin() + 10), SizeIs(10));  // of the first round
  auto text = to_string(loads.describe());
  EXPECT_THAT(text, AllOf(HasSubstr("loads"), HasSubstr("shuffle 7")));
}

TEST_P(ToyModule, AStateOfASourceIsRefusedByAnother) {
  auto first = where.run(from(toy::shelf("left", 5)) | toy::weigh(memory));
  for (int i = 0; i < 2; ++i) first.wait_next();
  auto rest = where.run(from(toy::shelf("left", 5)) | toy::weigh(memory), {.state = first.state()});
  EXPECT_THAT(weights(rest), ElementsAre(3, 4, 5));
  auto other = from(toy::shelf("right", 5)) | toy::weigh(memory);
  EXPECT_THAT([&] { test::collect(where, other, {.state = first.state()}); },
              ThrowsMessage<error>(HasSubstr("shelf left")));
}

TEST_P(ToyModule, IsDescribed) {
  auto stage = (samples_of({1}) | toy::weigh(memory)).describe().stages.back();
  EXPECT_EQ(stage.kind, "weigh");
  EXPECT_EQ(stage.executor, stage_executor::reactor);
}

// The calls that hooks see: key, bytes of the sample, and its label or the failure.
class seen_calls : public run_hooks {
 public:
  std::vector<std::string> all() const {
    std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  void enter_item(const item_call& call) override {
    if (call.stage == "weigh") call.local = call.item_as<sample>()->data().size();
  }
  void leave_item(const item_call& call, const std::exception_ptr& failure) override {
    if (call.stage != "weigh") return;
    auto outcome = failure ? " failed" : " to " + std::to_string(call.result_as<sample>()->label());
    std::lock_guard lock(mutex_);
    all_.push_back(std::string(call.item) + ": " +
                   std::to_string(std::any_cast<std::size_t>(call.local)) + outcome);
  }

  mutable std::mutex mutex_;  // guards all_
  std::vector<std::string> all_;
};

TEST_P(ToyModule, HooksSeeEachCallWithItsArgumentAndResult) {
  seen_calls seen;
  auto items =
      where.run(samples_of({5, 0, 8}) | toy::weigh(memory, on_error::skip), {.hooks = &seen});
  EXPECT_THAT(weights(items), ElementsAre(5, 8));
  EXPECT_THAT(seen.all(), UnorderedElementsAre("5: 5 to 5", "0: 0 failed", "8: 8 to 8"));
}

class refusing : public run_hooks {
  void enter_item(const item_call& call) override {
    if (call.stage == "weigh" && call.item == "3") throw std::runtime_error("no");
  }
};

TEST_P(ToyModule, AHookFailsAnItemByThePolicyOfTheStage) {
  refusing hook;
  auto items =
      where.run(samples_of({5, 3, 8}) | toy::weigh(memory, on_error::skip), {.hooks = &hook});
  EXPECT_THAT(weights(items), ElementsAre(5, 8));
  EXPECT_THAT([&] { test::collect(where, samples_of({3}) | toy::weigh(memory), {.hooks = &hook}); },
              ThrowsMessage<stage_error>("weigh (3): no"));
}

// The text of a line between `begin` and the next comma.
static std::string value_of(const std::string& line, const std::string& begin) {
  auto from = line.find(begin);
  if (from == std::string::npos) return {};
  from += begin.size();
  return line.substr(from, line.find(',', from) - from);
}

TEST_P(ToyModule, ATraceHasASpanForEachItemOnATrackOfTheStage) {
  testing_support::temp_dir dir;
  {
    trace record(dir / "trace");
    auto items = samples_of({5, 3, 8, 1, 9}) | toy::weigh(memory);
    test::collect(where, items, {.trace = &record});
  }
  std::ifstream file(dir / "trace");
  std::set<std::string> tracks;
  std::vector<std::string> spans;
  for (std::string line; std::getline(file, line);) {
    auto track = value_of(line, R"("tid":)");
    if (line.find(R"("args":{"name":"weigh"})") != std::string::npos) tracks.insert(track);
    bool is_span = line.find(R"("ph":"X")") != std::string::npos;
    if (is_span && tracks.contains(track)) spans.push_back(value_of(line, R"("name":)"));
  }
  EXPECT_THAT(spans, UnorderedElementsAre(R"("5")", R"("3")", R"("8")", R"("1")", R"("9")"));
}

TEST_P(ToyModule, MayBeLeft) {
  auto items = where.run(samples_of(std::vector<int>(1000, 7)) | toy::weigh(memory));
  items.wait_next();
}

}  // namespace lade::toy_module_test
