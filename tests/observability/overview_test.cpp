#include <lade/detail/observability/overview.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lade::detail::overview_test {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;

static item_overview item(std::uint64_t position, item_overview::doing what) {
  item_overview result;
  result.origin.add(position);
  result.what = what;
  return result;
}

TEST(StageOverview, SaysWhatEachItemWaitsFor) {
  using enum item_overview::doing;
  clock::time_point now(100s);
  auto slow = item(7, works);
  slow.name = "cat.jpg";
  slow.since = now - 63200ms;
  auto again = item(8, pauses);
  again.since = now + 1s;
  stage_overview stage{.slots = 8, .free = 4, .idle_workers = 1};
  stage.feeder = stage_overview::feeding::waits_for_memory;
  stage.wanted = true;
  stage.items = {slow, again, item(9, done), item(10, waits_for_worker), item(11, yields_part)};
  EXPECT_EQ(to_string("decode", stage, now),
            "decode: 4 of 8 slots free, 1 workers idle, its feeder waits for memory, the next "
            "stage waits for it\n"
            "  item 7 (cat.jpg) has been worked on for 63.2 s\n"
            "  item 8 has paused before another call for 0.0 s\n"
            "  item 9 is done and waits for earlier ones, or for the next stage\n"
            "  item 10 waits for a worker\n"
            "  item 11 has a part that waits for earlier ones, or for the next stage\n");
}

TEST(StageOverview, SaysWhatTheFeederWaitsFor) {
  using enum stage_overview::feeding;
  stage_overview stage;
  auto text = [&](stage_overview::feeding feeder) {
    stage.feeder = feeder;
    return to_string("x", stage, {});
  };
  EXPECT_THAT(text(waits_for_input),
              HasSubstr("its feeder is starved: it waits for the stage before"));
  EXPECT_THAT(text(waits_for_slot), HasSubstr("its feeder is blocked: it waits for free slots"));
  EXPECT_THAT(text(over), HasSubstr("its input has ended, the next stage does not wait\n"));
}

TEST(StageOverview, OfAnInlineStageNamesTheItemOfItsCall) {
  clock::time_point now(100s);
  EXPECT_EQ(to_string("x", std::nullopt, now), "x: runs inline, and is not called now\n");
  auto called_for = item(3, item_overview::doing::works);
  called_for.since = now - 5s;
  EXPECT_EQ(to_string("x", called_for, now),
            "x: runs inline\n  item 3 has been worked on for 5.0 s\n");
}

TEST(StageOverview, LeavesOutAllButTheFirst) {
  stage_overview stage;
  stage.items.assign(100, item(1, item_overview::doing::done));
  EXPECT_THAT(to_string("x", stage, {}), EndsWith("  and 68 more\n"));
}

}  // namespace lade::detail::overview_test
