#include <lade/cut.hpp>
#include <lade/description.hpp>
#include <lade/error.hpp>
#include <lade/failure.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sample.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>

#include "../support/pipelines.hpp"
#include "../support/toy_module.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
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

TEST_P(ToyModule, MayBeLeft) {
  auto items = where.run(samples_of(std::vector<int>(1000, 7)) | toy::weigh(memory));
  items.wait_next();
}

}  // namespace lade::toy_module_test
