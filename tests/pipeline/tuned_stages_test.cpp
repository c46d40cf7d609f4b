#include <lade/detail/pipeline/tuned_stages.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lade::detail::tuned_stages_test {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

static int described;
constexpr stage_key key{&described, 0};
static const tuner begin({16, 16}, 256, 768);

// A stage that limits its run. Its rate is proportional to its items in flight, up to the number of
// CPUs.
class busy_stage final : public tunable {
 public:
  busy_stage(tuned_stages& stages, stage_counters& counters, unsigned cpus = ~0u)
      : stages_(stages), counters_(counters), cpus_(cpus) {
    stages_.open(*this, key, counters_, begin);
  }
  busy_stage(const busy_stage&) = delete;
  ~busy_stage() { stages_.close(*this); }

  std::size_t slots_at(const tuner::setting& now) const noexcept override {
    return now.concurrency + now.buffer.value_or(0);
  }
  void set(const tuner::setting& now) override {
    EXPECT_LE(slots_at(now_), counters_.slots);
    if (slots_at(now) > slots_at(now_)) EXPECT_EQ(counters_.slots, slots_at(now));
    now_ = now;
  }
  const tuner::setting& now() const noexcept { return now_; }

  // Works until `until`, and is looked at then.
  void work(clock::time_point from, clock::time_point until) {
    counters_.next_starved.begin(from);
    counters_.next_starved.end(until);
    busy_.add(now_.concurrency * (until - from));
    counters_.out +=
        std::min(now_.concurrency, cpus_) * static_cast<std::uint64_t>((until - from) / 50ms);
    stages_.look(until);
  }

 private:
  tuned_stages& stages_;
  stage_counters& counters_;
  unsigned cpus_;
  call_time::caller busy_{counters_.busy};
  tuner::setting now_{};
};

// Times of looks, each as late after the last as it has to be.
class looks {
 public:
  void have_work(busy_stage& stage, int intervals) {
    for (; intervals > 0; --intervals) {
      auto from = now_;
      now_ += tuned_stages::interval;
      stage.work(from, now_);
    }
  }

 private:
  clock::time_point now_ = clock::now() + tuned_stages::interval;
};

TEST(TunedStages, AreCountedWithTheirCurrentSettingAndItsLimit) {
  tuned_stages stages;
  stage_counters counters("fetch");
  looks time;
  busy_stage stage(stages, counters);
  for (unsigned concurrency : {16u, 32u}) {
    EXPECT_EQ(counters.snapshot({}).workers, concurrency);
    EXPECT_EQ(counters.snapshot({}).slots, 2 * concurrency);
    EXPECT_EQ(counters.snapshot({}).most_workers, 256u);
    time.have_work(stage, 2);
  }
}

static stage_setting with(unsigned concurrency) { return {"fetch", concurrency, concurrency}; }

TEST(TunedStages, AreJudgedByEverySecondInterval) {
  tuned_stages stages;
  stage_counters counters("fetch");
  looks time;
  busy_stage stage(stages, counters);
  EXPECT_THAT(stages.settings(), ElementsAre(with(16)));
  std::vector<unsigned> tried;
  for (int i = 0; i < 6; ++i) {
    time.have_work(stage, 1);
    tried.push_back(stage.now().concurrency);
  }
  EXPECT_THAT(tried, ElementsAre(16u, 32u, 32u, 64u, 64u, 128u));
  EXPECT_THAT(stages.settings(), ElementsAre(with(128)));
  EXPECT_EQ(counters.workers, 128u);
}

TEST(TunedStages, TasksThatComputeAreNotRaisedBeyondTheirCpus) {
  for (unsigned cpus : {1u, 4u, 16u}) {
    tuned_stages stages;
    stage_counters counters("parse");
    looks time;
    busy_stage stage(stages, counters, cpus);
    unsigned most = 0;
    for (int i = 0; i < 60; ++i) {
      time.have_work(stage, 1);
      most = std::max(most, stage.now().concurrency);
    }
    EXPECT_LE(most, 32u) << "one trial that gives nothing";
    stages.freeze();
    EXPECT_LE(stage.now().concurrency, 16u);
    EXPECT_GE(stage.now().concurrency, std::min(cpus, 16u));
  }
}

TEST(TunedStages, AreNotLookedAtTwiceInOneInterval) {
  tuned_stages stages;
  stage_counters counters("fetch");
  looks time;
  busy_stage stage(stages, counters);
  auto soon = clock::now() + tuned_stages::interval;
  for (int i = 0; i < 10; ++i) {
    stage.work(soon, soon + 50ms);
    soon += 1ms;
  }
  EXPECT_EQ(stage.now().concurrency, 16u);
}

TEST(TunedStages, ContinueWithTheirSettingWhenTheyAreOpenedAgain) {
  tuned_stages stages;
  stage_counters counters("fetch");
  looks time;
  for (int round = 0; round < 6; ++round) {
    busy_stage stage(stages, counters);
    time.have_work(stage, 1);
  }
  EXPECT_THAT(stages.settings(), ElementsAre(with(128)));
  busy_stage last(stages, counters);
  EXPECT_EQ(last.now(), (tuner::setting{128, 128}));
}

TEST(TunedStages, AreNoLongerTunedWhereTheyHaveBeenOpenedElsewhere) {
  tuned_stages stages;
  stage_counters counters("fetch");
  looks time;
  {
    busy_stage first(stages, counters);
    busy_stage second(stages, counters);
    time.have_work(second, 2);
    EXPECT_EQ(first.now().concurrency, 16u);
    EXPECT_EQ(second.now().concurrency, 32u);
  }
  stages.look(clock::now() + 1h);
}

TEST(TunedStages, StartAnEpochWithTheBestOfTheLast) {
  tuned_stages stages;
  looks time;
  stage_counters before("fetch");
  busy_stage last(stages, before);
  time.have_work(last, 4);
  EXPECT_EQ(last.now().concurrency, 64u);
  stages.begin_epoch();
  EXPECT_EQ(last.now().concurrency, 32u);
  stage_counters counters("fetch");
  busy_stage next(stages, counters);
  EXPECT_EQ(next.now().concurrency, 32u);
  time.have_work(next, 2);
  EXPECT_THAT(stages.settings(), ElementsAre(with(64)));
  EXPECT_EQ(last.now().concurrency, 32u);
}

TEST(TunedStages, KeepTheBestWhenTheyAreFrozenAmidATrial) {
  tuned_stages stages;
  looks time;
  stage_counters counters("fetch");
  busy_stage stage(stages, counters);
  time.have_work(stage, 4);
  EXPECT_EQ(stage.now().concurrency, 64u);
  stages.freeze();
  EXPECT_EQ(stage.now().concurrency, 32u);
  EXPECT_THAT(stages.settings(), ElementsAre(with(32)));
  time.have_work(stage, 10);
  stages.begin_epoch();
  stage_counters of_next("fetch");
  busy_stage next(stages, of_next);
  time.have_work(next, 10);
  EXPECT_THAT(stages.settings(), ElementsAre(with(32)));
}

TEST(TunedStages, AreListedFromTheSourceOn) {
  tuned_stages stages;
  EXPECT_THAT(stages.settings(), IsEmpty());
  for (int round = 0; round < 2; ++round) {
    stages.list({&described, 1}, {"pad", 3});
    stages.list({&described, 2}, {"parse", 2, 4});
  }
  stages.freeze();
  stages.begin_epoch();
  EXPECT_THAT(stages.settings(),
              ElementsAre(stage_setting{"parse", 2, 4}, stage_setting{"pad", 3}));
  EXPECT_EQ(to_code(stages.settings()),
            "parse: {.concurrency = 2, .buffer = 4}\npad: {.concurrency = 3}\n");
}

}  // namespace lade::detail::tuned_stages_test
