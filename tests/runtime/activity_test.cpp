#include <lade/detail/observability/stage_counters.hpp>
#include <lade/detail/runtime/activity.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <deque>
#include <string>
#include <thread>
#include <vector>

namespace lade::detail::activity_test {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

static std::chrono::nanoseconds time_of(clockid_t which) {
  timespec now{};
  clock_gettime(which, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

// Computes so long that a step is certainly too long, however coarse the clock.
static void compute(std::chrono::milliseconds time = activity::allowed * 3 / 2) {
  auto end = time_of(CLOCK_THREAD_CPUTIME_ID) + time;
  while (time_of(CLOCK_THREAD_CPUTIME_ID) < end) {}
}

class Activity : public testing::Test {
 protected:
  Activity() {
    doing_.enter_thread();
    (void)doing_.take_long();  // what the thread has waited for so far does not count
  }
  ~Activity() override { this_activity = nullptr; }

  void block(const char* doing, const stage_counters& stage,
             std::chrono::milliseconds time = activity::allowed * 3 / 2) {
    doing_.begin();
    name_step(doing, stage.number);
    compute(time);
    doing_.end();
  }

  std::string name_of(std::uint64_t stage) const {
    for (auto* each : {&one_, &other_})
      if (each->number == stage) return each->name();
    return "none";
  }

  std::vector<std::string> take_long() {
    std::vector<std::string> all;
    for (auto& step : doing_.take_long()) all.push_back(name_of(step.stage) + " " + step.doing);
    return all;
  }

  activity doing_;
  stage_counters one_{"one"}, other_{"other"};
};

TEST_F(Activity, AStepThatWasTooLongIsTakenOnce) {
  block("a", one_);
  EXPECT_THAT(take_long(), ElementsAre("one a"));
  EXPECT_THAT(take_long(), IsEmpty());
}

TEST_F(Activity, AStepThatIsTooLongIsTakenAsLongAsItLasts) {
  doing_.begin();
  name_step("a", one_.number);
  EXPECT_THAT(take_long(), IsEmpty());
  compute();
  EXPECT_THAT(take_long(), ElementsAre("one a"));
  EXPECT_THAT(take_long(), ElementsAre("one a"));
  doing_.end();
}

TEST_F(Activity, OfEachStageTheLongestStepIsTaken) {
  block("short", one_);
  block("a", other_);
  block("long", one_, activity::allowed * 4);
  block("short", one_);
  EXPECT_THAT(take_long(), UnorderedElementsAre("one long", "other a"));
}

TEST_F(Activity, AStepWithinAnotherIsReportedSeparately) {
  doing_.begin();
  name_step("before", one_.number);
  compute();
  {
    activity::interruption interruption(doing_);
    block("inside", other_);
  }
  EXPECT_THAT(take_long(), UnorderedElementsAre("one before", "other inside"));
  compute();
  EXPECT_THAT(take_long(), ElementsAre("one before")) << "what follows has its name";
  doing_.end();
  EXPECT_THAT(take_long(), ElementsAre("one before"));
}

TEST_F(Activity, AnInterruptionBetweenStepsHasNoEffect) {
  { activity::interruption interruption(doing_); }
  compute();
  EXPECT_THAT(take_long(), IsEmpty());
}

TEST_F(Activity, StagesBeyondItsCapacityAreIgnored) {
  std::deque<stage_counters> stages;
  for (int i = 0; i < 10; ++i) block("a", stages.emplace_back(std::to_string(i)));
  EXPECT_EQ(take_long().size(), 8u);
}

TEST_F(Activity, WakesTheThreadsOfEveryRegisteredWord) {
  futex_word one = 0;
  futex_word other = 0;
  auto sleep_on = [](const futex_word& word) {
    return [&word] {
      while (word.load() == 0) futex_wait(word, 0);
    };
  };
  std::jthread first(sleep_on(one));
  std::jthread second(sleep_on(other));
  ++one;
  doing_.wake_later(&one);
  ++other;
  doing_.wake_later(&other);
  doing_.wake_now();
}

}  // namespace lade::detail::activity_test
