#include <lade/batch.hpp>
#include <lade/cut.hpp>
#include <lade/dashboard.hpp>
#include <lade/detail/observability/stage_counters.hpp>
#include <lade/event.hpp>
#include <lade/failure.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/lineage.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/metrics.hpp>
#include <lade/printable.hpp>
#include <lade/process.hpp>
#include <lade/route.hpp>
#include <lade/route_batches.hpp>
#include <lade/run.hpp>
#include <lade/sample.hpp>
#include <lade/stats.hpp>
#include <lade/support/require.hpp>
#include <lade/tee.hpp>
#include <lade/this_context.hpp>
#include <lade/thread_pool.hpp>
#include <lade/trace.hpp>

#include "../support/json.hpp"
#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace lade::stats_test {

using namespace std::chrono_literals;
using test::collect;
using test::numbers;
using test::up_to;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

static run_statistics run_of(std::vector<stage_statistics> stages) {
  run_statistics run;
  run.elapsed = 10s;
  run.threads = 8;
  run.cpus = 16;
  run.delivered = 100;
  run.stages = std::move(stages);
  return run;
}

static stage_statistics reader(std::chrono::nanoseconds busy) {
  stage_statistics stage;
  stage.name = "read";
  stage.workers = 64;
  stage.on_reactor = true;
  stage.busy = stage.returned = busy;
  return stage;
}

static stage_statistics decoder(std::chrono::nanoseconds busy) {
  stage_statistics stage;
  stage.name = "decode_image";
  stage.workers = 8;
  stage.busy = stage.returned = busy;
  return stage;
}

static stage_statistics in_place(const char* name, unsigned inputs) {
  stage_statistics stage;
  stage.name = name;
  stage.inputs = inputs;
  return stage;
}

TEST(Verdict, NamesTheBusyStageAndTheBlockedOne) {
  auto waiting = reader(20s);
  waiting.output_wait = 8s;
  EXPECT_EQ(verdict(run_of({waiting, decoder(77600ms)})),
            "decode_image is the bottleneck: 8 workers busy 97 % of the time; read is blocked on "
            "output 80 % of the time: raise threads, not the concurrency of read.");
}

TEST(Verdict, ABudgetForOneItemAtATimeIsNamed) {
  auto run = run_of({decoder(30s)});
  run.memory_wait = 5s;
  run.consumer_wait = 4s;
  EXPECT_EQ(verdict(run),
            "Memory is the bottleneck: stages waited for the budget 50 % of the time, and the "
            "consumer waited 40 %: raise memory_bytes.");
}

TEST(Verdict, MoreThreadsThanCpusAreNotAdvised) {
  auto run = run_of({decoder(77600ms)});
  run.cpus = 8;
  EXPECT_EQ(
      verdict(run),
      "decode_image is the bottleneck: 8 workers busy 97 % of the time: all CPUs are in use.");
}

TEST(Verdict, BusyReadsNeedMoreConcurrency) {
  EXPECT_EQ(verdict(run_of({reader(630s), decoder(10s)})),
            "read is the bottleneck: 64 tasks busy 98 % of the time: raise the concurrency of "
            "read.");
}

TEST(Verdict, NamesTheConsumerWhenItemsWaitForIt) {
  auto run = run_of({decoder(40s)});
  run.output_wait = 9s;
  EXPECT_THAT(verdict(run), StartsWith("The consumer is the bottleneck"));
}

TEST(Verdict, NamesThePoolWhenStagesShareIt) {
  auto augment = decoder(33s);
  augment.name = "augment";
  EXPECT_THAT(verdict(run_of({decoder(45s), augment})),
              AllOf(StartsWith("The CPU pool is the bottleneck"), HasSubstr("decode_image")));
}

TEST(Verdict, OfThePoolLeavesOutStagesThatWorkElsewhere) {
  auto augment = decoder(33s);
  augment.name = "augment";
  auto elsewhere = decoder(55s);
  elsewhere.name = "elsewhere";
  elsewhere.own_threads = 8;
  elsewhere.cpu = 1s;
  EXPECT_EQ(verdict(run_of({reader(450s), decoder(45s), augment, elsewhere})),
            "The CPU pool is the bottleneck: its 8 threads are busy 98 % of the time, mostly with "
            "decode_image: raise threads.");
}

// Of four threads, automatic stages have three.
static run_statistics run_of_automatic(std::vector<stage_statistics> stages) {
  for (auto& stage : stages) {
    stage.workers = stage.shared_threads = 3;
    stage.cpu = stage.busy;
  }
  auto run = run_of(std::move(stages));
  run.threads = 4;
  return run;
}

TEST(Verdict, NamesTheCpusThatAutomaticStagesShare) {
  auto augment = decoder(13s);
  augment.name = "augment";
  EXPECT_EQ(verdict(run_of_automatic({decoder(16s), augment})),
            "The CPUs of automatic stages are the bottleneck: their 3 threads are busy 97 % of the "
            "time, mostly with decode_image: raise tune.cpus.");
}

TEST(Verdict, AnAutomaticStageThatLimitsAloneNeedsMoreCpus) {
  EXPECT_EQ(verdict(run_of_automatic({decoder(29s)})),
            "decode_image is the bottleneck: 3 workers busy 97 % of the time: raise tune.cpus.");
}

TEST(Verdict, NamesTheInputOfTheFirstStageWhenNoStageIsBusy) {
  auto waiting = reader(2s);
  waiting.input_wait = 9s;
  EXPECT_THAT(verdict(run_of({waiting, decoder(3s)})),
              StartsWith("The input of read is the bottleneck: no stage with workers is busy, and "
                         "read is starved 90 % of the time."));
}

TEST(Verdict, FeedersThatLackMemoryNameTheBudget) {
  auto waiting = reader(20s);
  waiting.memory_wait = 8s;
  auto run = run_of({waiting, decoder(30s)});
  run.consumer_wait = 4s;
  EXPECT_THAT(verdict(run),
              StartsWith("Memory is the bottleneck: stages waited for the budget 80 % of "
                         "the time"));
}

// Tasks are busy while they wait for memory.
TEST(Verdict, ReadersThatLackMemoryNameTheBudget) {
  auto lacking = reader(630s);
  lacking.slots = 128;
  lacking.memory_wait = lacking.next_starved = 9s;
  auto run = run_of({lacking, decoder(10s)});
  run.consumer_wait = 4s;
  EXPECT_THAT(verdict(run), StartsWith("Memory is the bottleneck"));
}

TEST(Verdict, ReadersThatWaitForMemoryAheadOfABusyStageAreNotBlamed) {
  auto ahead = reader(630s);
  ahead.slots = 128;
  ahead.memory_wait = 9s;
  ahead.next_starved = 100ms;
  ahead.busy = ahead.returned = 100s;
  auto run = run_of({ahead, decoder(77600ms)});
  run.consumer_wait = 9s;
  EXPECT_THAT(verdict(run), StartsWith("decode_image is the bottleneck"));
  auto batching = decoder(77600ms);  // its feeder waits for the memory of the next batch
  batching.slots = 256;
  batching.memory_wait = batching.next_starved = 9s;
  run.stages = {batching};
  EXPECT_THAT(verdict(run), StartsWith("decode_image is the bottleneck"));
}

TEST(Verdict, NamesTheStageWhoseWorkersPauseBeforeOtherAttempts) {
  auto fetch = reader(6s);
  fetch.paused = 620s;
  auto run = run_of({fetch, decoder(1s)});
  run.consumer_wait = 9s;
  EXPECT_EQ(verdict(run),
            "read is the bottleneck: 64 tasks busy 1 % of the time, and pausing between "
            "attempts 97 %: raise the concurrency of read, or have fewer of its calls fail.");
}

TEST(Verdict, PausesAreNotTakenForWorkOfTheCpus) {
  auto half = decoder(40s);
  half.paused = 36s;
  auto run = run_of({half});
  run.cpus = 8;
  EXPECT_EQ(verdict(run),
            "decode_image is the bottleneck: 8 workers busy 50 % of the time, and pausing between "
            "attempts 45 %: raise the concurrency of decode_image, or have fewer of its calls "
            "fail.");
  run.stages[0].busy = run.stages[0].returned = 0s;
  run.stages[0].paused = 79s;
  EXPECT_THAT(verdict(run), HasSubstr("pausing between attempts 99 %"));
}

TEST(Verdict, SaysThatUnreturnedCallsMayComputeOrWait) {
  auto hung = decoder(80s);
  hung.returned = {};
  EXPECT_EQ(verdict(run_of({hung})),
            "decode_image is the bottleneck: 8 workers busy 100 % of the time, in calls that have "
            "not returned: whether they compute or wait is not known yet.");
  auto other = hung;
  hung.busy = other.busy = 40s;
  EXPECT_THAT(verdict(run_of({hung, other})),
              AllOf(StartsWith("The CPU pool is the bottleneck"), EndsWith("is not known yet.")));
}

TEST(Verdict, AdvisesToAwaitIfWorkersWaitInPlainFunctions) {
  auto stage = decoder(77600ms);
  stage.cpu = 4s;
  EXPECT_EQ(verdict(run_of({stage})),
            "decode_image is the bottleneck: 8 workers busy 97 % of the time, of which they "
            "compute 5 %: have its function return a task and await, or raise threads.");
}

TEST(Verdict, StatesHowMuchOfTheBusyTimeWorkersCompute) {
  auto stage = decoder(77600ms);
  stage.cpu = 4s;
  auto before = reader(20s);
  before.output_wait = 8500ms;
  EXPECT_THAT(
      verdict(run_of({before, stage})),
      StartsWith("decode_image is the bottleneck: 8 workers busy 97 % of the time, of which "
                 "they compute 5 %; read is blocked on output 85 % of the time: have"));
}

TEST(Verdict, DoesNotAdviseToAwaitIfThreadsArePreempted) {
  auto stage = decoder(77600ms);
  stage.cpu = 19400ms;
  stage.preempted = 54320ms;
  EXPECT_EQ(
      verdict(run_of({stage})),
      "decode_image is the bottleneck: 8 workers busy 97 % of the time, of which they compute "
      "25 % and lack a CPU 70 %: the CPUs are shared with other programs.");
  auto run = run_of({stage});
  run.cpus = 4;
  EXPECT_THAT(verdict(run), EndsWith("70 %: all CPUs are in use."));
  auto first = decoder(33s);
  auto second = decoder(45s);
  first.cpu = second.cpu = 3s;
  first.preempted = second.preempted = 30s;
  EXPECT_THAT(verdict(run_of({first, second})),
              EndsWith("compute only 8 % of that: the CPUs are shared with other programs."));
}

// Of a flat_map whose generators await, on as many workers as there are threads.
static stage_statistics awaiting(std::chrono::nanoseconds busy) {
  auto stage = decoder(busy);
  stage.name = "expand";
  stage.awaited = busy - busy / 10;
  return stage;
}

TEST(Verdict, AFlatMapThatAwaitsNeedsMoreConcurrency) {
  EXPECT_EQ(verdict(run_of({awaiting(76s)})),
            "expand is the bottleneck: 8 workers busy 95 % of the time, of which they await 90 %: "
            "raise the concurrency of expand.");
  auto searched = awaiting(76s);
  searched.most_workers = 64;
  EXPECT_THAT(verdict(run_of({searched})),
              EndsWith("they await 90 %: its concurrency is automatic, and the search has found no "
                       "better one so far."));
  searched.most_workers = 8;
  EXPECT_THAT(verdict(run_of({searched})), EndsWith("they await 90 %: raise tune.most."));
  auto in_place = awaiting(9500ms);
  in_place.workers = 0;
  EXPECT_EQ(verdict(run_of({in_place})),
            "expand is the bottleneck: it runs inline, busy 95 % of the time, of which it awaits "
            "90 %: raise the concurrency of expand.");
}

TEST(Verdict, AwaitedTimeIsNoUseOfThePool) {
  EXPECT_THAT(verdict(run_of({awaiting(45s), decoder(33s)})),
              StartsWith("No stage limits the run by itself"));
}

TEST(Verdict, AdvisesToAwaitIfThePoolWaits) {
  auto first = decoder(33s);
  auto second = decoder(45s);
  first.cpu = second.cpu = 3s;
  EXPECT_THAT(verdict(run_of({first, second})), AllOf(StartsWith("The CPU pool is the bottleneck"),
                                                      HasSubstr("but compute only 8 % of that")));
}

// A stage that has no room half of the time and for which the next one waits as long, with calls
// of 1 ms and of 120 ms.
static stage_statistics uneven(int fast, int slow) {
  detail::stage_counters counters("decode_image");
  counters.workers = 8;
  for (int i = 0; i < fast; ++i) counters.latency.add(1ms);
  for (int i = 0; i < slow; ++i) counters.latency.add(120ms);
  auto stage = counters.snapshot({});
  stage.output_wait = 6s;
  stage.next_starved = 7s;
  return stage;
}

TEST(Verdict, OneSlowItemInAHundredNeedsALargerBuffer) {
  EXPECT_EQ(
      verdict(run_of({uneven(9'900, 100)})),
      "Slow items block decode_image: one in 100 takes 122 ms or more, the median 1.02 ms. The "
      "next stage waits for one 70 % of the time, while finished items are queued behind it: raise "
      "the buffer of decode_image, or yield items as they finish (item_order::completion).");
}

TEST(Verdict, PartsInInputOrderNeedALargerBuffer) {
  auto stage = uneven(9'900, 0);
  stage.in = 20;
  stage.out = 9'900;
  EXPECT_EQ(
      verdict(run_of({stage})),
      "The order of the parts blocks decode_image: the next stage waits for a part 70 % of the "
      "time, while parts of later items are queued: raise the buffer of decode_image, or "
      "yield parts as they are ready (item_order::completion).");
  stage.in = stage.out;
  EXPECT_THAT(verdict(run_of({stage})), StartsWith("No stage limits the run by itself"));
}

TEST(Verdict, SlowItemsAreFoundHoweverFewOrMany) {
  for (int among : {20, 50, 100, 101, 300})
    EXPECT_THAT(verdict(run_of({uneven(50 * (among - 1), 50)})),
                StartsWith("Slow items block decode_image: one in " + std::to_string(among)));
}

TEST(Verdict, SlowItemsThatTakeLittleTimeTogetherAreNotTheReason) {
  EXPECT_THAT(verdict(run_of({uneven(9'900, 20)})), Not(HasSubstr("Slow items")));
}

TEST(Verdict, ReportsNoSlowItemsIfAllAreEquallySlow) {
  EXPECT_THAT(verdict(run_of({uneven(9'900, 0)})), Not(HasSubstr("Slow items")));
  EXPECT_THAT(verdict(run_of({uneven(0, 9'900)})), Not(HasSubstr("Slow items")));
}

TEST(Verdict, NamesAStageWithoutWorkersBetweenTwoThatWait) {
  auto first = decoder(20s);
  first.output_wait = 8s;
  first.next_starved = 1s;
  stage_statistics filter;
  filter.name = "filter";
  auto second = decoder(2s);
  second.name = "augment";
  second.input_wait = 9500ms;
  second.next_starved = 9s;
  auto run = run_of({first, filter, second});
  run.consumer_wait = 9s;
  EXPECT_EQ(verdict(run),
            "filter is the bottleneck: no stage with workers is busy, and augment is starved 95 % "
            "of the time. It runs on one thread: move the work into a map with concurrency.");
}

// Two branches of a source and a map; the first waits for its source.
static std::vector<stage_statistics> slow_and_quick_branch() {
  auto slow = decoder(2s);
  slow.name = "slow";
  slow.input_wait = 9500ms;
  slow.next_starved = 9s;
  auto quick = decoder(2s);
  quick.name = "quick";
  quick.output_wait = 9s;
  return {in_place("source", 0), slow, in_place("source", 0), quick};
}

TEST(Verdict, NamesTheSourceOfTheBranchThatWaitsForIt) {
  auto stages = slow_and_quick_branch();
  stages.push_back(in_place("merge", 2));
  auto expected =
      "source is the bottleneck: no stage with workers is busy, and slow is starved 95 % of the "
      "time.";
  auto run = run_of(stages);
  run.consumer_wait = 9s;
  EXPECT_EQ(verdict(run), expected);
  std::ranges::rotate(run.stages.begin(), run.stages.begin() + 2, run.stages.begin() + 4);
  EXPECT_EQ(verdict(run), expected);
}

TEST(Verdict, NamesTheStageBehindSeveralBranches) {
  auto stages = slow_and_quick_branch();
  stages[1].input_wait = stages[1].next_starved = 1s;
  stages.push_back(in_place("zip", 2));
  auto run = run_of(stages);
  run.consumer_wait = 9s;
  EXPECT_EQ(verdict(run),
            "zip is the bottleneck: no stage with workers is busy, and the consumer waits 90 % of "
            "the time. It runs on one thread: move the work into a map with concurrency.");
}

// A stage with paths, which holds their results.
static stage_statistics gathering(const char* name) {
  auto stage = in_place(name, 1);
  stage.slots = 4;
  stage.gathers = true;
  return stage;
}

TEST(Verdict, NamesASlowStageOfAPathThoughItsResultsAreHeld) {
  auto quick = decoder(2s);
  quick.output_wait = 9s;
  auto route = gathering("route");
  route.next_starved = 9s;
  auto run = run_of({in_place("source", 0), quick, route, in_place("slow", 1)});
  run.consumer_wait = 9s;
  EXPECT_THAT(verdict(run), StartsWith("route and slow are the bottleneck: "));
}

TEST(Verdict, PathsThatHaveNoWorkersBeforeThemAreConcurrent) {
  auto run = run_of({in_place("source", 0), gathering("tee"), decoder(1s), decoder(1s)});
  run.consumer_wait = 9s;
  EXPECT_THAT(verdict(run),
              StartsWith("source, tee, decode_image and decode_image are the bottleneck: "));
}

TEST(Verdict, PathsAreNotTakenForStagesOneBehindTheOther) {
  auto read = reader(10s);
  read.next_starved = 1s;
  auto often = decoder(40s);
  often.output_wait = 9s;
  auto seldom = decoder(100ms);
  seldom.name = "decode_tiff";
  seldom.input_wait = 10s;
  auto run = run_of({in_place("source", 0), read, gathering("route"), often, seldom});
  run.output_wait = 4s;
  run.consumer_wait = 3s;
  EXPECT_THAT(verdict(run), StartsWith("No stage limits the run by itself"));
  run.consumer_wait = 9s;
  run.stages.push_back(in_place("slow", 1));
  EXPECT_EQ(
      verdict(run),
      "route, decode_image, decode_tiff and slow are the bottleneck: no stage with workers is "
      "busy, and the consumer waits 90 % of the time.");
  run.stages[4].busy = run.stages[4].returned = 80s;
  EXPECT_THAT(verdict(run), AllOf(StartsWith("decode_tiff is the bottleneck"),
                                  Not(HasSubstr("blocked on output"))));
}

TEST(Verdict, ASourceWithoutWorkersBehindItIsBeforeWhatJoinsIt) {
  auto stages = slow_and_quick_branch();
  stages.erase(stages.begin() + 1);
  stages.push_back(in_place("merge", 2));
  auto run = run_of(stages);
  run.consumer_wait = 9s;
  EXPECT_EQ(verdict(run),
            "source and merge are the bottleneck: no stage with workers is busy, and the consumer "
            "waits 90 % of the time.");
}

TEST(Verdict, AStageOfAnotherBranchIsNotCalledBlocked) {
  auto stages = slow_and_quick_branch();
  stages[3].busy = 77600ms;
  stages[1].output_wait = 9s;
  EXPECT_THAT(verdict(run_of(stages)),
              AllOf(StartsWith("quick is the bottleneck"), Not(HasSubstr("blocked on output"))));
}

TEST(Verdict, NamesAStageWithoutWorkersBeforeTheConsumer) {
  auto first = decoder(20s);
  first.output_wait = 8s;
  stage_statistics last;
  last.name = "collate";
  auto run = run_of({first, last});
  run.consumer_wait = 9s;
  EXPECT_THAT(verdict(run), StartsWith("collate is the bottleneck: no stage with workers is busy, "
                                       "and the consumer waits 90 % of the time"));
}

TEST(Verdict, SaysWhenNoStageLimitsTheRunByItself) {
  auto run = run_of({reader(64s), decoder(40s)});
  run.consumer_wait = 3s;
  run.output_wait = 4s;
  EXPECT_EQ(
      verdict(run),
      "No stage limits the run by itself: the consumer waits 30 % of the time, finished items wait "
      "for it 40 %, and the busiest stage is decode_image: 8 workers busy 50 % of the time.");
}

// A short run waits mostly for its first items.
TEST(Verdict, TheHandOverBehindTheLastStageIsNotBlamed) {
  auto run = run_of({decoder(40s)});
  run.consumer_wait = 9s;
  EXPECT_THAT(verdict(run), StartsWith("No stage limits the run by itself"));
}

TEST(Verdict, SaysWhenNoStageIsConcurrent) {
  stage_statistics only;
  only.name = "filter";
  EXPECT_THAT(verdict(run_of({only})), StartsWith("The run has no concurrent stages"));
}

TEST(Verdict, OfARunWithoutAnItemSaysSoAndNamesTheBusyStage) {
  auto run = run_of({decoder(77600ms)});
  run.delivered = 0;
  EXPECT_THAT(verdict(run),
              StartsWith("Nothing was delivered. decode_image is the bottleneck: 8 workers busy"));
}

TEST(Verdict, ARunThatIsTooShortToJudgeSaysSo) {
  EXPECT_THAT(verdict(run_statistics()), StartsWith("Too short to judge"));
  auto run = run_of({decoder(77600ms)});
  run.elapsed = 4ms;
  EXPECT_EQ(verdict(run), "Too short to judge: a run of 4.00 ms is mostly start-up.");
}

TEST(Verdict, EscapesControlCharactersInNames) {
  auto odd = decoder(77600ms);
  odd.name = "a\x1b[2Jb\n";
  EXPECT_THAT(verdict(run_of({odd})), StartsWith("a\\x1b[2Jb\\n is the bottleneck"));
  EXPECT_THAT(table(run_of({odd})), HasSubstr("\na\\x1b[2Jb\\n  "));
}

TEST(Printable, EscapesControlCharactersAndInvalidUtf8) {
  EXPECT_EQ(printable("gr\xc3\xb6\xc3\x9f"
                      "er \xe2\x82\xac.jpg"),
            "gr\xc3\xb6\xc3\x9f"
            "er \xe2\x82\xac.jpg");
  EXPECT_EQ(printable("a\x1b]0;b\a\tc\r\n\x7f"), "a\\x1b]0;b\\x07\\tc\\x0d\\n\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "1m"),
            "\\xc2\\x9b"
            "1m")
      << "one character that begins a sequence";
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
}

TEST(StatisticsTable, AlignsItsColumns) {
  auto stage = decoder(40s);
  stage.in = 1'281'167;
  stage.out = 1'281'160;
  stage.failed = 7;
  stage.p50 = 612us;
  auto text = table(run_of({reader(10s), stage}));
  EXPECT_THAT(text, HasSubstr("1,281,167"));
  EXPECT_THAT(text, HasSubstr("612 us"));
  std::size_t width = text.find('\n');
  for (std::size_t at = 0; at < text.size(); at += width + 1) EXPECT_EQ(text[at + width], '\n');
}

TEST(StatisticsTable, AlignsNamesThatAreNotAscii) {
  auto odd = decoder(1s);
  odd.name =
      "gr\xc3\xb6\xc3\x9f"
      "er";
  auto text = table(run_of({odd, decoder(1s)}));
  auto lines = std::count(text.begin(), text.end(), '\n');
  auto width = text.find('\n');
  EXPECT_EQ(text.size(), static_cast<std::size_t>(lines) * (width + 1) + 2);
}

TEST(StatisticsTable, HasTheSlowestItemsOnRequest) {
  auto stage = decoder(40s);
  stage.slowest = {{"train/x\n.jpg", lineage(17), 1250ms}, {"", lineage(3), 2ms}};
  auto run = run_of({reader(10s), stage});
  EXPECT_THAT(table(run), Not(HasSubstr("slowest")));
  EXPECT_THAT(table(run, {.slowest = true}), testing::EndsWith(R"(slowest items of decode_image
  1.25 s  train/x\n.jpg (item 17)
  2.00 ms  item 3
)"));
  EXPECT_THAT(to_json(run),
              HasSubstr(R"("slowest":[{"item":"train/x\u000a.jpg","positions":[[17,17]],)"
                        R"("duration":1.250000000},{"item":"",)"));
}

TEST(SlowestCalls, AreTheTenLongestTheLongestFirst) {
  detail::slowest_calls slowest;
  auto call = [&](int i) {
    if (std::chrono::milliseconds duration(i); slowest.take(duration))
      slowest.add({std::to_string(i), lineage(static_cast<std::uint64_t>(i)), duration});
  };
  for (int i : {3, 1, 2}) call(i);
  EXPECT_EQ(slowest.now().size(), 3u);
  EXPECT_EQ(slowest.now()[0].item, "3");
  for (int i = 100; i > 0; --i) call(i);
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(slowest.now().at(static_cast<std::size_t>(i)).duration,
              std::chrono::milliseconds(100 - i));
  EXPECT_EQ(slowest.now().size(), 10u);
  EXPECT_FALSE(slowest.take(91ms));
}

TEST(Statistics, TheDifferenceOfTwoMomentsHasTheSlowItemsThatAreNew) {
  auto early = run_of({decoder(1s)});
  early.stages[0].slowest = {{"a", lineage(0), 5ms}, {"b", lineage(1), 1ms}};
  auto late = early;
  late.stages[0].slowest.insert(late.stages[0].slowest.begin(), {"c", lineage(2), 7ms});
  ASSERT_EQ((late - early).stages[0].slowest.size(), 1u);
  EXPECT_EQ((late - early).stages[0].slowest[0].item, "c");
}

TEST(DurationHistogram, QuantilesAreWithinSevenPercent) {
  detail::duration_histogram histogram;
  for (int i = 1; i <= 10'000; ++i) histogram.add(std::chrono::nanoseconds(i));
  for (double part : {0.01, 0.5, 0.9, 0.99}) {
    auto exact = part * 10'000;
    EXPECT_NEAR(static_cast<double>(histogram.now().quantile(part).count()), exact, exact * 0.07);
  }
}

TEST(DurationHistogram, TakesAnyDuration) {
  detail::duration_histogram histogram;
  histogram.add(0ns);
  histogram.add(std::chrono::nanoseconds::max());
  histogram.add(-5ns);
  EXPECT_EQ(histogram.now().quantile(0), 1ns);
  EXPECT_EQ(histogram.now().total(), 3u);
}

TEST(DurationHistogram, CountsBeyond32BitsDoNotWrap) {
  detail::duration_histogram histogram;
  constexpr auto many = std::uint64_t{5'000'000'000};
  histogram.add(1us, many);
  EXPECT_EQ(histogram.now().total(), many);
  histogram.add(1us, many);
  EXPECT_EQ(histogram.now().total(), 2 * many);
}

TEST(DurationHistogram, AQuantileOfMoreCountsThanADoubleResolvesIsInTheLastBucket) {
  duration_counts counts;
  counts.counts[3] = (std::uint64_t{1} << 62) - 1;
  EXPECT_EQ(counts.quantile(1), duration_counts::duration_of(3));
}

TEST(Statistics, TheDifferenceOfTwoMomentsHasTheQuantilesOfItsInterval) {
  detail::stage_counters counters("work");
  for (int i = 0; i < 1000; ++i) counters.latency.add(1us);
  counters.in = 1000;
  auto early = run_of({counters.snapshot(detail::clock::now())});
  for (int i = 0; i < 10; ++i) counters.latency.add(1ms);
  counters.in = 1010;
  detail::call_time::caller(counters.busy).add(7ns);
  auto late = run_of({counters.snapshot(detail::clock::now())});
  late.elapsed = 12s;
  late.delivered = 130;
  auto between = late - early;
  EXPECT_EQ(between.elapsed, 2s);
  EXPECT_EQ(between.delivered, 30u);
  EXPECT_EQ(between.threads, 8u);
  EXPECT_EQ(between.stages[0].in, 10u);
  EXPECT_EQ(between.stages[0].busy, 7ns);
  EXPECT_EQ(between.stages[0].durations.total(), 10u);
  EXPECT_NEAR(static_cast<double>(between.stages[0].p50.count()), 1e6, 7e4);
  EXPECT_LT(late.stages[0].p50, 2us);
}

TEST(Statistics, AStageThatWasOpenedInBetweenIsNewInTheDifference) {
  auto first = decoder(3s);
  first.out = 5;
  auto later = run_of({reader(2s), decoder(10s)});
  later.stages[1].out = 7;
  auto between = later - run_of({first});
  ASSERT_EQ(between.stages.size(), 2u);
  EXPECT_EQ(between.stages[0].busy, 2s);
  EXPECT_EQ(between.stages[1].busy, 7s);
  EXPECT_EQ(between.stages[1].out, 2u);
}

TEST(Statistics, RatesAndReadinessAreSharesOfTheTime) {
  auto stage = decoder(1s);
  stage.out = 250;
  stage.slots = 16;
  stage.next_starved = 2500ms;
  auto run = run_of({stage});
  run.consumer_wait = 8s;
  EXPECT_EQ(qps(run), 10);
  EXPECT_EQ(qps(stage, run.elapsed), 25);
  EXPECT_EQ(readiness(run), 1 - 0.8);
  EXPECT_EQ(readiness(stage, run.elapsed), 0.75);
}

TEST(Statistics, ARunThatHasNotLastedHasNoRates) {
  stage_statistics stage;
  stage.out = 5;
  stage.slots = 1;
  EXPECT_EQ(qps(stage, 0ns), 0);
  EXPECT_EQ(readiness(stage, 0ns), 1);
  EXPECT_EQ(qps(run_statistics()), 0);
}

TEST(Statistics, AStageThatHoldsNoItemsHasNoReadiness) {
  EXPECT_FALSE(readiness(stage_statistics(), 1s));
}

TEST(WaitingTime, CountsTheWaitThatIsNotOver) {
  detail::waiting_time waited;
  detail::clock::time_point start(100s);
  EXPECT_EQ(waited.until(start), 0s);
  waited.begin(start);
  EXPECT_EQ(waited.until(start + 3s), 3s);
  EXPECT_EQ(waited.until(start - 1s), 0s);
  waited.end(start + 5s);
  EXPECT_EQ(waited.until(start + 50s), 5s);
  EXPECT_EQ(waited.ended().total(), 1u);
  EXPECT_NEAR(static_cast<double>(waited.ended().quantile(0.5).count()), 5e9, 0.07 * 5e9);
  waited.begin(start + 50s);
  EXPECT_EQ(waited.until(start + 51s), 6s);
  EXPECT_EQ(waited.ended().total(), 1u);
}

TEST(WaitingTime, MayCountFromAMomentInsideOfAWait) {
  detail::waiting_time waited;
  detail::clock::time_point start(100s);
  waited.begin(start);
  waited.end(start + 3s);
  waited.begin(start + 4s);
  waited.count_from(start + 10s);
  EXPECT_EQ(waited.until(start + 10s), 0s);
  EXPECT_EQ(waited.until(start + 12s), 2s);
  EXPECT_EQ(waited.ended().total(), 0u);
  waited.end(start + 15s);
  EXPECT_EQ(waited.until(start + 50s), 5s);
  EXPECT_EQ(waited.ended().total(), 1u);
  EXPECT_NEAR(static_cast<double>(waited.ended().quantile(0.5).count()), 5e9, 0.07 * 5e9);
}

TEST(CallTime, CountsCallsThatHaveNotReturned) {
  detail::call_time calls;
  detail::clock::time_point start(100s);
  detail::call_time::caller one(calls);
  detail::call_time::caller other(calls);
  one.begin(start);
  other.begin(start + 1s);
  EXPECT_EQ(calls.until(start + 4s).all, 4s + 3s);
  EXPECT_EQ(calls.until(start + 4s).returned, 0s);
  one.end(start + 5s);
  EXPECT_EQ(calls.until(start + 8s).all, 5s + 7s);
  EXPECT_EQ(calls.until(start + 8s).returned, 5s);
  EXPECT_EQ(calls.until(start).all, 5s) << "a moment before the call under way";
  other.end(start + 9s);
  EXPECT_EQ(calls.until(start + 20s).all, 5s + 8s);
  EXPECT_EQ(calls.until(start + 20s).returned, 5s + 8s);
}

TEST(CallTime, ACallEndsWithItsCaller) {
  detail::call_time calls;
  {
    detail::call_time::caller gone(calls);
    gone.begin(detail::clock::now());
  }
  auto now = detail::clock::now();
  EXPECT_EQ(calls.until(now).all, calls.until(now + 1h).all);
  detail::call_time::caller next(calls);
  next.begin(now);
  EXPECT_GE(calls.until(now + 1h).all, 1h);
}

// With a search for each, this would take an hour.
TEST(CallTime, AsManyCallersAsAStageMayHaveBeginAndEndInLinearTime) {
  detail::call_time calls;
  std::deque<detail::call_time::caller> callers;
  for (std::uint64_t i = 0; i < support::most_calls; ++i) callers.emplace_back(calls).add(1ns);
  EXPECT_EQ(calls.until(detail::clock::now()).all.count(), std::int64_t{support::most_calls});
  callers.clear();
  for (int i = 0; i < 1000; ++i) callers.emplace_back(calls).add(1ns);
  EXPECT_EQ(calls.until(detail::clock::now()).all.count(),
            std::int64_t{support::most_calls} + 1000);
}

TEST(CpuTimes, DistinguishWaitsFromPreemption) {
  detail::cpu_times times;
  times.add({.cpu = 5, .waits = 7, .preemptions = 1}, {.cpu = 25, .waits = 7, .preemptions = 3},
            100ns, 2);
  EXPECT_EQ(times.computed, 2 * 20);
  EXPECT_EQ(times.preempted, 2 * 80);
  times.add({.waits = 7, .preemptions = 3}, {.cpu = 20, .waits = 8, .preemptions = 3}, 100ns, 1);
  EXPECT_EQ(times.preempted, 2 * 80) << "it waited alone";
  times.add({.waits = 7, .preemptions = 3}, {.cpu = 20, .waits = 8, .preemptions = 6}, 100ns, 1);
  EXPECT_EQ(times.preempted, 2 * 80 + 60) << "one of four times it waited";
  times.add({}, {.cpu = 120, .preemptions = 1}, 100ns, 1);
  EXPECT_EQ(times.preempted, 2 * 80 + 60) << "clocks differ";
}

TEST(CpuSampler, CountsLongCallsInFullAndShortOnesOnAverage) {
  detail::cpu_times cpu;
  detail::cpu_sampler sampler(cpu, true);
  auto call = [&](std::chrono::nanoseconds taken) {
    sampler.begin();
    sampler.end(taken);
    return cpu.computed.exchange(0) > 0;
  };
  int sampled = 0;
  for (int i = 0; i < 16'000; ++i) sampled += call(1us);
  EXPECT_NEAR(sampled, 1000, 200);
  call(1ms);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(call(1ms));
}

TEST(CpuSampler, OfTasksCountsNothing) {
  detail::cpu_times cpu;
  detail::cpu_sampler sampler(cpu, false);
  for (int i = 0; i < 100; ++i) {
    sampler.begin();
    sampler.end(1ms);
  }
  EXPECT_EQ(cpu.computed, 0);
}

TEST(JsonReader, ReadsNothingElse) {
  for (auto* text : {"0", "-1.50e+3", " [ ] ", "{}", R"({"a":[1,{"b":null}],"c":"\"\\\u00e9"})"})
    EXPECT_TRUE(test::is_json(text)) << text;
  for (auto* text : {"", "01", "1.", ".5", "-", "nan", "inf", "[1,]", "[1 2]", "{\"a\"}", "{a:1}",
                     "{\"a\":1,}", "\"\n\"", R"("\x")", R"("\u12")", "\"", "{} {}", "True"})
    EXPECT_FALSE(test::is_json(text)) << text;
}

TEST(StatisticsText, ParsesAsJsonWhateverStagesAreCalled) {
  auto odd = reader(20s);
  odd.name = "a\"b\\c\nd\te\x01\x1f \xc3\xa9 </script>";
  EXPECT_TRUE(test::is_json(to_json(run_of({odd, decoder(30s)}))));
  EXPECT_TRUE(test::is_json(to_json(run_statistics())));
  EXPECT_TRUE(test::is_json(to_json(process_statistics())));
  EXPECT_TRUE(test::is_json(to_json(read_process_statistics({.pss = true}))));
  EXPECT_TRUE(test::is_json(to_json(failure_record{odd.name, odd.name, odd.name, 2, lineage(7)})));
}

TEST(StatisticsText, OfALiveRunParsesAsJson) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(numbers{10}) | map([](int i) { return i; }) |
                           filter([](int i) { return i % 2 == 0; }));
  EXPECT_TRUE(test::is_json(to_json(items.statistics())));
  collect(items);
  EXPECT_TRUE(test::is_json(to_json(items.statistics())));
}

TEST(StatisticsText, IsJsonWithTimesInSeconds) {
  auto waiting = reader(20s);
  waiting.name = "read \"it\"";
  waiting.p50 = 1500ns;
  auto text = to_json(run_of({waiting, decoder(30s)}));
  EXPECT_THAT(text,
              StartsWith("{\"elapsed\":10.000000000,\"first_item\":0.000000000,\"threads\":8,"));
  EXPECT_THAT(text, HasSubstr("\"stages\":[{\"name\":\"read \\\"it\\\"\",\"workers\":64,"));
  EXPECT_THAT(text, HasSubstr("\"p50\":0.000001500,"));
  EXPECT_THAT(text, HasSubstr("\"qps\":10.000,\"readiness\":1.0000,\"stages\""));
  EXPECT_THAT(text, HasSubstr("\"qps\":0.000,\"readiness\":null,"));
  EXPECT_THAT(text, HasSubstr("},{\"name\":\"decode_image\","));
  EXPECT_THAT(text, HasSubstr("\"verdict\":\"No stage limits the run by itself"));
}

// Of 100 waits, fifty last `unit`, forty twice and ten three times as long.
static duration_counts a_hundred_waits(std::chrono::nanoseconds unit) {
  detail::duration_histogram waits;
  waits.add(unit, 50);
  waits.add(2 * unit, 40);
  waits.add(3 * unit, 10);
  return waits.now();
}

TEST(StatisticsText, HasTheQuantilesOfWaits) {
  auto waiting = reader(20s);
  waiting.input_waits = a_hundred_waits(4ns);
  waiting.output_waits = a_hundred_waits(400ns);
  auto run = run_of({waiting});
  run.consumer_waits = a_hundred_waits(40us);
  run.output_waits = a_hundred_waits(4ms);
  auto text = to_json(run);
  auto has = [&](const std::string& name, const duration_counts& waits) {
    auto seconds = [&](double share) {
      char number[32];
      std::snprintf(number, sizeof number, "%.9f",
                    std::chrono::duration<double>(waits.quantile(share)).count());
      return std::string(number);
    };
    EXPECT_LT(waits.quantile(0.5), waits.quantile(0.9));
    EXPECT_LT(waits.quantile(0.9), waits.quantile(0.99));
    EXPECT_THAT(text, HasSubstr("\"" + name + "_p50\":" + seconds(0.5) + ",\"" + name + "_p90\":" +
                                seconds(0.9) + ",\"" + name + "_p99\":" + seconds(0.99) + ","));
  };
  has("input_wait", waiting.input_waits);
  has("output_wait", waiting.output_waits);
  has("output_wait", run.output_waits);
  has("consumer_wait", run.consumer_waits);
}

TEST(StatisticsText, HasTheDepthOfAStage) {
  auto stage = decoder(1s);
  stage.slots = 16;
  stage.depth = 5;
  EXPECT_THAT(to_json(run_of({stage})), HasSubstr("\"slots\":16,\"depth\":5,"));
}

// What has happened in some time that begins now.
template <class T>
static run_statistics meanwhile(const run<T>& of) {
  auto before = of.statistics();
  test::wait_until([&] { return of.statistics().elapsed > before.elapsed + 2ms; });
  return of.statistics() - before;
}

// One of the waits lasted so long, within the resolution of the histogram.
static void expect_a_wait_of(std::chrono::nanoseconds time, const duration_counts& waits) {
  EXPECT_GE(waits.total(), 1u);
  EXPECT_GE(waits.quantile(1), time * 9 / 10);
}

TEST(RunStatistics, ShowThatAStageIsBlockedByTheFunctionOfTheNext) {
  runtime runtime({.threads = 4});
  test::gate gate;
  auto hold = [&](int i) {
    gate.pass();
    return i;
  };
  auto quick = [](int i) { return i; };
  auto stages = from(up_to(20)) | map(quick, {.concurrency = 2, .buffer = 0, .name = "first"}) |
                map(hold, {.concurrency = 2, .buffer = 0, .name = "second"});
  auto items = runtime.run(stages);
  run_statistics full;  // two slots of each, one of them with an item that the next has taken
  test::wait_until([&] {
    full = items.statistics();
    return full.stages.size() == 3 && full.stages[1].in == 3 && full.stages[2].in == 2;
  });
  test::wait_until([&] {
    auto now = items.statistics();
    return now.stages[1].output_wait > full.stages[1].output_wait &&
           now.stages[2].output_wait > full.stages[2].output_wait &&
           now.stages[2].next_starved > full.stages[2].next_starved;
  });
  auto now = meanwhile(items);
  gate.open();
  EXPECT_EQ(now.stages[1].output_wait, now.elapsed);
  EXPECT_EQ(now.stages[1].input_wait, 0ns);
  EXPECT_EQ(now.stages[1].next_starved, 0ns);
  EXPECT_EQ(readiness(now.stages[1], now.elapsed), 1);
  EXPECT_EQ(now.stages[2].output_wait, now.elapsed);
  EXPECT_EQ(now.stages[2].next_starved, now.elapsed);
  EXPECT_EQ(readiness(now.stages[2], now.elapsed), 0);
  EXPECT_EQ(now.consumer_wait, 0ns);
  EXPECT_EQ(now.output_wait, 0ns);
  EXPECT_EQ(now.stages[1].output_waits.total(), 0u) << "of waits that are over";
  EXPECT_EQ(now.stages[1].depth, 1u) << "without the one that the next stage has taken";
  EXPECT_EQ(now.stages[2].depth, 2u);
  EXPECT_EQ(collect(items), up_to(20));
  auto since = items.statistics() - full;
  EXPECT_EQ(since.stages[1].depth, 0u);
  EXPECT_EQ(since.stages[2].depth, 0u);
  expect_a_wait_of(now.elapsed, since.stages[1].output_waits);
  expect_a_wait_of(now.elapsed, since.stages[2].output_waits);
}

// The zeros of a stage that is not opened yet.
static stage_statistics stage_of(const run_statistics& run, std::string_view name) {
  auto stage = std::ranges::find(run.stages, name, &stage_statistics::name);
  return stage == run.stages.end() ? stage_statistics() : *stage;
}

// Calls test(stage, name) for stages that take their items in separate coroutines.
template <class Test>
static void for_each_taking_stage(Test test) {
  using items = pipeline<int>;
  auto same = [](int i) { return i; };
  auto twice = [](int i) { return std::vector{i, i}; };
  auto each = [](std::vector<int> all) { return all; };
  auto odd = [](int i) { return i % 2; };
  auto queued = map(same, {.concurrency = 2, .buffer = 0});
  for (auto order : {item_order::input, item_order::completion}) {
    auto stage = flat_map(twice, {.concurrency = 2, .buffer = 1, .order = order});
    test([=](const items& in) { return in | stage; }, "flat_map");
  }
  auto merged = [=](const items& in) {
    return merge(std::vector<items>{in, in | map(same)}, {.order = merge_order::arrival});
  };
  test(merged, "merge");
  test([=](const items& in) { return in | route(odd, {.buffer = 1}, queued, queued); }, "route");
  test([=](const items& in) { return in | tee({.buffer = 1}, queued, queued); }, "tee");
  auto parts = [=](const items& in) {
    auto path = map(std::identity());
    return in | batch(2) | route_batches(odd, {.buffer = 1}, path, path) | flat_map(each);
  };
  test(parts, "route_batches");
}

TEST(RunStatistics, ShowThatAStageWithSeveralQueuesIsBlocked) {
  for_each_taking_stage([](auto taking, auto name) {
    runtime runtime({.threads = 4});
    auto items = runtime.run(taking(from(up_to(50))));
    test::wait_until([&] {
      auto now = meanwhile(items);
      return stage_of(now, name).output_wait == now.elapsed &&
             stage_of(now, name).input_wait == 0ns;
    });
    while (items.wait_next()) {}
    EXPECT_GE(stage_of(items.statistics(), name).output_waits.total(), 1u);
  });
}

TEST(RunStatistics, ShowThatAStageWithSeveralQueuesIsStarved) {
  for_each_taking_stage([](auto taking, auto name) {
    runtime runtime({.threads = 4});
    test::gate gate;
    auto source = [&gate, i = 0]() mutable -> std::optional<int> {
      if (i == 4) gate.pass();
      return i < 10 ? std::optional<int>(i++) : std::nullopt;
    };
    auto items = runtime.run(taking(from(source)));
    std::thread consumer([&] {
      while (items.wait_next()) {}
    });
    gate.wait_for(1);
    test::wait_until([&] {
      auto now = meanwhile(items);
      return stage_of(now, name).input_wait == now.elapsed &&
             stage_of(now, name).output_wait == 0ns;
    });
    gate.open();
    consumer.join();
    EXPECT_GE(stage_of(items.statistics(), name).input_waits.total(), 1u);
  });
}

TEST(RunStatistics, AMergeWaitsForItsInputsOnlyWhileItWaitsForAllThatAreLive) {
  runtime runtime({.threads = 4});
  test::gate first, second;
  auto behind = [](test::gate& gate) {
    return from([&gate, i = 0]() mutable -> std::optional<int> {
      if (i == 1) gate.pass();
      return i < 3 ? std::optional<int>(i++) : std::nullopt;
    });
  };
  auto third = [&, i = 0]() mutable -> std::optional<int> {
    if (i == 0) {
      first.wait_for(1);
      second.wait_for(1);
    }
    return i < 30 ? std::optional<int>(i++) : std::nullopt;
  };
  auto merged = merge(std::vector<pipeline<int>>{behind(first), behind(second), from(third)},
                      {.order = merge_order::arrival});
  auto items = runtime.run(merged, {.ready = 1});
  test::wait_until([&] {  // the third waits for room
    auto now = meanwhile(items);
    auto merge = stage_of(now, "merge");
    return merge.output_wait == now.elapsed && merge.input_wait == 0ns;
  });
  for (int i = 0; i < 32; ++i) EXPECT_TRUE(items.wait_next());
  test::wait_until([&] {  // the third has ended
    auto now = meanwhile(items);
    return stage_of(now, "merge").input_wait == now.elapsed;
  });
  first.open();
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(items.wait_next());
  second.open();
  EXPECT_EQ(collect(items).size(), 2u);
}

// Of a stage that is inside of as many calls as it makes at a time, since before.
template <class Attach>
static run_statistics while_called(const Attach& attach, int calls) {
  runtime runtime({.threads = 2});
  test::gate gate;
  auto items = runtime.run(attach(from(up_to(20)), [&gate](int i) {
    gate.pass();
    return i;
  }));
  std::thread consumer([&] { collect(items); });
  gate.wait_for(calls);
  auto now = meanwhile(items);
  gate.open();
  consumer.join();
  return now;
}

TEST(RunStatistics, CallsThatHaveNotReturnedCountAsBusy) {
  auto beside = while_called(
      [](auto in, auto hold) { return in | map(hold, {.concurrency = 2, .name = "hold"}); }, 2);
  EXPECT_EQ(beside.stages.back().busy, 2 * beside.elapsed);
  EXPECT_EQ(beside.stages.back().returned, 0ns);
  auto in_place = while_called(
      [](auto in, auto hold) { return in | map(hold, {.concurrency = 1, .name = "hold"}); }, 1);
  EXPECT_EQ(in_place.stages.back().busy, in_place.elapsed);
  auto apart = while_called(
      [](auto in, auto hold) {
        return in | flat_map([hold](int i) { return std::vector{hold(i)}; }, {.concurrency = 2});
      },
      2);
  EXPECT_EQ(apart.stages.back().busy, 2 * apart.elapsed);
}

TEST(RunStatistics, NumberStagesOfOneNameFromTheSourceOn) {
  runtime runtime({.threads = 2});
  auto same = [](int i) { return i; };
  auto refuse = [](int) -> int { throw std::runtime_error("no"); };
  auto stages = from(up_to(3)) | map(same) | filter([](int) { return true; }) | map(refuse) |
                map(same, {.concurrency = automatic});
  auto items = runtime.run(stages, {.on_error = on_error::skip});
  collect(items);
  std::vector<std::string> names;
  for (auto& each : items.statistics().stages) names.push_back(each.name);
  EXPECT_EQ(names, (std::vector<std::string>{"source", "map", "filter", "map (2)", "map (3)"}));
  EXPECT_EQ(items.failures().at(0).stage, "map (2)");
  EXPECT_EQ(items.settings().at(0).stage, "map (3)");
  EXPECT_THAT(to_prometheus(items.statistics()), HasSubstr("{stage=\"map (2)\"} 3\n"));
  run_report report;
  report.total = report.interval = items.statistics();
  for (std::string name : {"map", "map (2)", "map (3)"}) {
    EXPECT_THAT(to_json(report.total), HasSubstr("{\"name\":\"" + name + "\","));
    EXPECT_THAT(render(report, 200), HasSubstr("\n" + name + "  "));
  }
  EXPECT_THAT([&] { test::collect(runtime, stages); },
              testing::ThrowsMessage<stage_error>(HasSubstr("map (2) (0): no")));
}

TEST(RunStatistics, NameTheSlowestItems) {
  runtime runtime({.threads = 2});
  test::gate gate;
  auto hold = [&](const std::string& name) {
    if (name == "slow") gate.pass();
    return name;
  };
  std::vector<std::string> names{"a", "slow", "b"};
  auto items = runtime.run(from(names) | map(hold, {.concurrency = 2}));
  std::thread consumer([&] { collect(items); });
  gate.wait_for(1);
  gate.open();
  consumer.join();
  auto slowest = items.statistics().stages.back().slowest;
  ASSERT_EQ(slowest.size(), 3u);
  EXPECT_TRUE(std::ranges::is_sorted(slowest, std::greater(), &slow_item::duration));
  auto slow = std::ranges::find(slowest, "slow", &slow_item::item);
  EXPECT_EQ(slow->positions, lineage(1));
}

TEST(RunStatistics, StopCountingAtTheEndOfTheRun) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(up_to(3)) | map([](int i) { return i; }));
  EXPECT_EQ(items.statistics().first_item, 0ns);
  items.wait_next();
  auto first = items.statistics();
  EXPECT_GT(first.first_item, 0ns);
  EXPECT_LE(first.first_item, first.elapsed);
  collect(items);
  auto ended = items.statistics();
  EXPECT_EQ(ended.first_item, first.first_item);
  auto now = std::chrono::steady_clock::now();
  test::wait_until([&] { return std::chrono::steady_clock::now() > now; });
  EXPECT_EQ(items.statistics().elapsed, ended.elapsed);
  EXPECT_EQ(items.statistics().consumer_wait, ended.consumer_wait);
}

TEST(RunStatistics, OfAnIntervalHaveAFirstItemThatWasDeliveredInIt) {
  run_statistics before, first, last;
  before.elapsed = 2s;
  first.elapsed = 5s;
  last.elapsed = 9s;
  first.first_item = last.first_item = 3s;
  EXPECT_EQ((first - run_statistics()).first_item, 3s);
  EXPECT_EQ((first - before).first_item, 1s) << "since the interval began";
  EXPECT_EQ((last - first).first_item, 0s);
  EXPECT_EQ((before - run_statistics()).first_item, 0s);
}

TEST(RunStatistics, CountTheBytesOfTheItemsThatAStageYields) {
  runtime runtime({.threads = 2});
  auto fetch = [](int i) { return sample(std::to_string(i)).with_data(buffer(1000)); };
  auto items = runtime.run(from(up_to(3)) | map(fetch, {.name = "fetch"}));
  collect(items);
  EXPECT_EQ(items.statistics().stages.at(0).bytes, 0u);
  EXPECT_EQ(items.statistics().stages.at(1).bytes, 3000u);
}

// Does not know its size.
struct unsized {
  std::size_t content_bytes() const { throw std::runtime_error("unknown"); }
};

TEST(RunStatistics, CountNoBytesOfItemsWhoseSizeThrows) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(up_to(3)) | map([](int) { return unsized(); }, {.concurrency = 2}));
  EXPECT_EQ(collect(items).size(), 3u);
  EXPECT_EQ(items.statistics().stages.at(1).bytes, 0u);
}

TEST(RunStatistics, CountNoBytesOfMemoryThatAFunctionDoesNotReturn) {
  runtime runtime({.threads = 2});
  auto crop = [](int) {
    auto scratch = allocate_now(1 << 20);
    return allocate_now(1000);
  };
  for (unsigned concurrency : {1u, 2u}) {  // in place, and by workers
    auto items = runtime.run(from(up_to(3)) | map(crop, {.concurrency = concurrency, .buffer = 0}));
    collect(items);
    EXPECT_EQ(items.statistics().stages.at(1).bytes, 3000u) << concurrency;
  }
}

TEST(RunStatistics, ShowThatAllStagesAreStarvedByTheSource) {
  runtime runtime({.threads = 2});
  test::gate gate;
  auto source = [&gate, i = 0]() mutable -> std::optional<int> {
    if (i == 3) gate.pass();
    return i < 5 ? std::optional<int>(i++) : std::nullopt;
  };
  auto items =
      runtime.run(from(source) | map([](int i) { return i; }, {.concurrency = 2, .name = "first"}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(items.wait_next(), i);
  std::thread consumer([&] { EXPECT_EQ(collect(items), (std::vector{3, 4})); });
  gate.wait_for(1);
  auto last = items.statistics();
  test::wait_until([&] {
    auto now = items.statistics();
    return now.stages.at(1).next_starved > last.stages.at(1).next_starved &&
           now.consumer_wait > last.consumer_wait;
  });
  auto now = meanwhile(items);
  gate.open();
  consumer.join();
  EXPECT_EQ(now.stages[1].input_wait, now.elapsed);
  EXPECT_EQ(now.stages[1].output_wait, 0ns);
  EXPECT_EQ(now.stages[1].next_starved, now.elapsed);
  EXPECT_EQ(readiness(now.stages[1], now.elapsed), 0);
  EXPECT_EQ(now.consumer_wait, now.elapsed);
  EXPECT_EQ(readiness(now), 0);
  EXPECT_EQ(now.stages[1].input_waits.total(), 0u) << "of waits that are over";
  EXPECT_EQ(now.consumer_waits.total(), 0u);
  auto ended = items.statistics();
  expect_a_wait_of(now.elapsed, (ended - last).stages[1].input_waits);
  expect_a_wait_of(now.elapsed, (ended - last).consumer_waits);
  EXPECT_EQ((ended - ended).stages[1].input_waits.total(), 0u);
  EXPECT_EQ((ended - ended).consumer_waits.total(), 0u);
}

TEST(RunStatistics, ShowThatItemsWaitForTheConsumer) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(up_to(20)), {.ready = 2});
  run_statistics full;  // two items are ready, and one more has been made
  test::wait_until([&] {
    full = items.statistics();
    return full.stages.size() == 1 && full.stages[0].out == 3;
  });
  test::wait_until([&] { return items.statistics().output_wait > full.output_wait; });
  auto now = meanwhile(items);
  EXPECT_EQ(now.output_wait, now.elapsed);
  EXPECT_EQ(now.consumer_wait, 0ns);
  EXPECT_EQ(readiness(now), 1);
  EXPECT_EQ(items.statistics().depth, 3u);
  EXPECT_EQ(items.statistics().output_waits.total(), 0u);
  EXPECT_EQ(collect(items), up_to(20));
  EXPECT_EQ(items.statistics().depth, 0u);
  EXPECT_GT(items.statistics().output_waits.total(), 0u);
}

TEST(RunStatistics, MayBeReadWhileStagesAreOpened) {
  runtime runtime({.threads = 3});
  thread_pool own({.threads = 2});
  auto same = [](int i) { return i; };
  auto alone = [](int i) { return std::vector{i}; };
  auto stages = from(up_to(5)) | map(same, {.concurrency = 2, .pool = &own}) |
                map(same, {.concurrency = automatic}) | batch(5) | unbatch() |
                flat_map(alone, {.concurrency = 2, .pool = &own}) | repeat(30);
  trace record("/dev/null");
  auto items = runtime.run(stages, {.tune = {.cpus = 1}, .trace = &record});
  std::atomic<bool> over = false;
  std::thread reader([&] {
    while (!over) items.statistics();
  });
  EXPECT_EQ(collect(items).size(), 150u);
  over = true;
  reader.join();
  auto last = items.statistics().stages;
  EXPECT_EQ(last[1].own_threads, 2u);
  EXPECT_GT(last[2].shared_threads, 0u);
  EXPECT_EQ(last.back().own_threads, 2u);
}

TEST(RunStatistics, HaveTheCpuTimeOfPlainFunctions) {
  runtime runtime({.threads = 2});
  auto compute = [](int i) {
    random draw(static_cast<std::uint64_t>(i));
    std::uint64_t sum = 0;
    for (int round = 0; round < 200'000; ++round) sum += draw();
    return sum;
  };
  auto wait = [](int i) -> task<int> {
    co_await this_context();
    co_return i;
  };
  auto items = runtime.run(from(up_to(40)) | map(wait) | map(compute));
  collect(items);
  auto stages = items.statistics().stages;
  EXPECT_EQ(stages[1].cpu.count(), 0);
  EXPECT_GT(stages[2].cpu.count(), 0);
}

// Yields an item, and the next one after go_on().
class held_source {
 public:
  async_generator<int> operator()() const {
    int first = 0;
    co_yield first;
    co_await *may_go_on_;
    int second = 1;
    co_yield second;
  }
  void go_on() { may_go_on_->set(); }

 private:
  std::shared_ptr<event> may_go_on_ = std::make_shared<event>();
};

// Statistics of the last stage after a call of its function was blocked for `took`.
template <class T, class Held>
static stage_statistics after_a_long_call(run<T>& items, Held& held,
                                          std::chrono::nanoseconds& took) {
  test::wait_until([&] {
    auto stages = items.statistics().stages;
    return !stages.empty() && stages.back().busy > stages.back().returned;
  });
  auto before = items.statistics().elapsed;
  test::wait_until([&] { return items.statistics().elapsed > 20 * before + 5ms; });
  took = items.statistics().elapsed - before;
  held();
  collect(items);
  return items.statistics().stages.back();
}

TEST(RunStatistics, HaveTheDurationsAndTheCpuTimeOfFunctions) {
  runtime runtime({.threads = 2});
  test::gate gate;
  auto hold = [&](int i) {
    if (i % 2 == 1) gate.pass();
    return i;
  };
  auto items = runtime.run(from(up_to(4)) | map(hold, {.concurrency = 2, .buffer = 8}));
  gate.wait_for(2);
  std::chrono::nanoseconds took{};
  auto open = [&] { gate.open(); };
  auto stage = after_a_long_call(items, open, took);
  constexpr double least = 0.93;  // the quantiles are within 7 %
  EXPECT_EQ(stage.durations.total(), 4u);
  EXPECT_GE(stage.busy, 2 * took);
  EXPECT_EQ(stage.returned, stage.busy);
  EXPECT_GE(stage.p99, least * took);
  EXPECT_LT(stage.p50, took);
  EXPECT_LT(stage.cpu, stage.busy / 2);
}

TEST(RunStatistics, SeparateTheAwaitedTimeOfParts) {
  for (unsigned concurrency : {1u, 2u}) {
    event may_begin;
    // The first call of a stage is always measured, which one in place does not do with all.
    auto parts = [&may_begin](int i) -> async_generator<int> {
      co_await may_begin;
      co_yield i;
      co_yield i;
    };
    runtime runtime({.threads = 2});
    auto items = runtime.run(from(up_to(1)) | flat_map(parts, {.concurrency = concurrency}));
    std::chrono::nanoseconds took{};
    auto go_on = [&] { may_begin.set(); };
    auto stage = after_a_long_call(items, go_on, took);
    EXPECT_GE(stage.awaited, took);
    EXPECT_LT(stage.awaited, stage.busy);
  }
}

// The same at a tenth of a thousandth of the speed: what a verdict is given is long enough.
static run_statistics slowed(run_statistics run) {
  constexpr int times = 10'000;
  run.elapsed *= times;
  run.consumer_wait *= times;
  run.output_wait *= times;
  run.memory_wait *= times;
  for (auto& stage : run.stages) {
    for (auto* time : {&stage.busy, &stage.returned, &stage.cpu, &stage.awaited, &stage.input_wait,
                       &stage.output_wait, &stage.memory_wait, &stage.next_starved})
      *time *= times;
  }
  return run;
}

// Pipelines with a known bottleneck, which the test holds up when so many items are delivered: of
// the time meanwhile. `held` waits until it is.
template <class Held, class Release>
static std::string verdict_while(runtime& where, const pipeline<int>& what, std::uint64_t delivered,
                                 Held held, Release release) {
  auto items = where.run(what);
  std::thread consumer([&] { collect(items); });
  held();
  test::wait_until([&] { return items.statistics().delivered == delivered; });
  run_statistics now;
  test::wait_until([&] {
    now = meanwhile(items);
    return now.consumer_wait == now.elapsed && now.output_wait == 0ns;
  });
  release();
  consumer.join();
  return verdict(slowed(now));
}

static auto quick(const char* name) {
  return map([](int i) { return i; }, {.concurrency = 2, .name = name});
}

TEST(VerdictOfARun, NamesASlowSource) {
  runtime runtime({.threads = 2});
  test::gate gate;
  auto slow = [&gate, i = 0]() mutable -> std::optional<int> {
    if (i == 2) gate.pass();
    return i < 4 ? std::optional(i++) : std::nullopt;
  };
  auto text = verdict_while(
      runtime, from(slow) | quick("quick"), 2, [&] { gate.wait_for(1); }, [&] { gate.open(); });
  EXPECT_THAT(text, HasSubstr("source is the bottleneck"));
}

TEST(VerdictOfARun, NamesTheSlowOneOfTwoSources) {
  runtime runtime({.threads = 2});
  for (bool slow_first : {true, false}) {
    test::gate gate;
    auto slow = [&gate, i = 0]() mutable -> std::optional<int> {
      if (i == 2) gate.pass();
      return i < 4 ? std::optional(i++) : std::nullopt;
    };
    std::vector<pipeline<int>> inputs{from(slow) | quick("behind_slow"),
                                      from(up_to(60)) | quick("quick")};
    if (!slow_first) std::ranges::reverse(inputs);
    auto text = verdict_while(
        runtime, merge(inputs), slow_first ? 4 : 5, [&] { gate.wait_for(1); },
        [&] { gate.open(); });
    EXPECT_THAT(text, HasSubstr(" is the bottleneck: no stage with workers is busy, and "
                                "behind_slow is starved"));
  }
}

// Of a stage while the consumer waits for its second item.
template <class Make>
static stage_statistics while_empty(const Make& attach, const std::string& name) {
  runtime runtime({.threads = 2});
  held_source source;
  auto items = runtime.run(attach(from(source)));
  items.wait_next();
  std::thread consumer([&] { items.wait_next(); });
  auto now = [&] { return stage_of(items.statistics(), name); };
  auto before = now().next_starved;
  test::wait_until([&] { return now().next_starved > before; });
  auto found = now();
  source.go_on();
  consumer.join();
  return found;
}

TEST(Statistics, StagesWithPathsReportThatTheyAreEmpty) {
  auto same = map([](int i) { return i; }, {.concurrency = 1});
  auto all_same = map([](std::vector<int> all) { return all; }, {.concurrency = 1});
  auto to_first = [](int) { return 0; };
  auto routed = while_empty([&](auto in) { return in | route(to_first, same); }, "route");
  auto parted = while_empty(
      [&](auto in) { return in | batch(1) | route_batches(to_first, all_same); }, "route_batches");
  auto divided = while_empty([&](auto in) { return in | tee(same, same); }, "tee");
  auto merged = while_empty(
      [](auto in) { return merge(std::vector{in}, {.order = merge_order::arrival}); }, "merge");
  for (auto& stage : {routed, parted, divided, merged}) {
    EXPECT_TRUE(stage.gathers) << stage.name;
    EXPECT_TRUE(readiness(stage, 1h)) << stage.name;
  }
}

// Of a stage while the consumer takes nothing and no further result fits, and when the run has been
// stopped. The run has ended then: what waited has been dropped.
template <class Make>
static std::pair<stage_statistics, stage_statistics> while_full(const Make& attach,
                                                                const std::string& name) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(attach(from(up_to(1'000))), {.ready = 1});
  auto now = [&] { return stage_of(items.statistics(), name); };
  test::wait_until([&] { return now().depth > 0; });
  auto full = now();
  items.stop();
  try {
    while (items.wait_next()) {}
  } catch (const error& stopped) {
    EXPECT_EQ(stopped.code(), errc::stopped);
  }
  return {full, now()};
}

TEST(Statistics, StagesWithPathsReportHowManyResultsWait) {
  auto same = map([](int i) { return i; }, {.concurrency = 1});
  auto all_same = map([](std::vector<int> all) { return all; }, {.concurrency = 1});
  auto by_parity = [](int i) { return i % 2; };
  auto routed = while_full([&](auto in) { return in | route(by_parity, same, same); }, "route");
  auto parted = while_full(
      [&](auto in) { return in | batch(2) | route_batches(by_parity, all_same, all_same); },
      "route_batches");
  auto divided = while_full([&](auto in) { return in | tee(same, same); }, "tee");
  auto merged = while_full(
      [](auto in) { return merge(std::vector{in, in}, {.order = merge_order::arrival}); }, "merge");
  auto unbuffered = while_full([&](auto in) { return in | tee({.buffer = 0}, same, same); }, "tee");
  for (auto& [full, stopped] : {routed, parted, divided, merged, unbuffered}) {
    EXPECT_LE(full.depth, full.slots) << full.name;
    EXPECT_EQ(stopped.depth, 0u) << full.name;
  }
}

TEST(Statistics, TheDepthOfAConcurrentFlatMapIsWithinItsSlots) {
  for (auto order : {item_order::input, item_order::completion}) {
    runtime runtime({.threads = 3});
    test::gate gate;
    auto slow = [&gate]() -> std::optional<int> {
      gate.pass();
      return std::nullopt;
    };
    auto twice = flat_map([](int i) { return std::vector{i, i}; },
                          {.concurrency = 4, .buffer = 1, .order = order, .name = "twice"});
    std::vector<pipeline<int>> inputs{from(slow), from(up_to(100)) | twice};
    auto items = runtime.run(merge(inputs));  // in turns: asks the slow source first
    auto now = [&] { return stage_of(items.statistics(), "twice"); };
    test::wait_until([&] { return now().output_wait > 0ns; });
    EXPECT_GT(now().depth, 0u);
    EXPECT_LE(now().depth, now().slots);
    gate.open();
    EXPECT_EQ(collect(items).size(), 200u);
    EXPECT_EQ(now().depth, 0u);
  }
}

TEST(Statistics, TheDepthOfAConcurrentFlatMapCountsItemsThatWaitForAThread) {
  for (auto order : {item_order::input, item_order::completion}) {
    test::gate gate;
    runtime runtime({.threads = 2});
    thread_pool busy({.threads = 1});
    auto slow = [&gate](int i) {
      gate.pass();
      return std::vector{i};
    };
    auto items = runtime.run(from(up_to(10)) |
                             flat_map(slow, {.concurrency = 4, .order = order, .pool = &busy}));
    auto now = [&] { return stage_of(items.statistics(), "flat_map"); };
    test::wait_until([&] { return now().output_wait > 0ns; });
    EXPECT_EQ(now().depth, 4u);
    gate.open();
    EXPECT_EQ(collect(items).size(), 10u);
    EXPECT_EQ(now().depth, 0u);
  }
}

TEST(Statistics, TheDepthIsThatOfTheLatestRound) {
  detail::depth_gauge depth;
  int first = 0;
  int second = 0;
  depth.begin(&first);
  depth.set(&first, 3);
  EXPECT_EQ(depth.now(), 3u);
  depth.begin(&second);
  EXPECT_EQ(depth.now(), 0u);
  depth.set(&second, 2);
  depth.set(&first, 0);  // the first round ends late
  EXPECT_EQ(depth.now(), 2u);
}

TEST(VerdictOfARun, NamesAStageInsideOfLongCalls) {
  runtime runtime({.threads = 3});
  test::gate gate;
  auto hold = [&](int i) {
    gate.pass();
    return i;
  };
  auto text = verdict_while(
      runtime, from(up_to(10)) | map(hold, {.concurrency = 2, .name = "slow"}) | quick("quick"), 0,
      [&] { gate.wait_for(2); }, [&] { gate.open(); });
  EXPECT_THAT(text, HasSubstr("slow is the bottleneck: 2 workers busy 100 % of the time"));
}

TEST(VerdictOfARun, NamesASlowConsumer) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(from(up_to(60)) | quick("quick"), {.ready = 2});
  run_statistics now;
  test::wait_until([&] {
    now = meanwhile(items);
    return now.output_wait == now.elapsed;
  });
  EXPECT_THAT(verdict(slowed(now)), HasSubstr("The consumer is the bottleneck"));
}

TEST(VerdictOfARun, NamesAPoolThatStagesShare) {
  runtime runtime({.threads = 2});
  test::gate gate;
  auto hold = [&](int i) {
    gate.pass();
    return i;
  };
  auto hold_second = [&](int i) {
    if (i == 1) gate.pass();
    return i;
  };
  auto stages = from(up_to(10)) | map(hold_second, {.concurrency = 2, .name = "first"}) |
                map(hold, {.concurrency = 2, .name = "second"});
  auto text = verdict_while(runtime, stages, 0, [&] { gate.wait_for(2); }, [&] { gate.open(); });
  EXPECT_THAT(text, HasSubstr("The CPU pool is the bottleneck: its 2 threads are busy 100 %"));
}

static task<buffer> held_fetch(int i, event& go_on) {
  auto content = co_await allocate(1 << 20);
  if (i >= 3) co_await go_on;
  co_return content;
}

TEST(VerdictOfARun, NamesABudgetThatIsTooSmall) {
  runtime runtime({.threads = 2, .memory_bytes = 3 << 20});
  test::gate gate;
  event go_on;
  auto source = [&gate, i = 0]() mutable -> std::optional<int> {
    if (i == 3) gate.pass();  // until it is known what an item needs
    return i < 20 ? std::optional(i++) : std::nullopt;
  };
  auto fetch = [&](int i) { return held_fetch(i, go_on); };
  auto size = [](const buffer& content) { return static_cast<int>(content.size()); };
  auto items = runtime.run(from(source) | map(fetch, {.concurrency = 16, .name = "fetch"}) |
                           map(size, {.concurrency = 1}));
  std::thread consumer([&] { collect(items); });
  test::wait_until([&] { return items.statistics().delivered == 3; });
  gate.open();
  run_statistics now;
  test::wait_until([&] {
    now = meanwhile(items);
    auto& stage = now.stages.at(1);
    return std::min({stage.memory_wait, stage.next_starved, now.consumer_wait}) == now.elapsed;
  });
  go_on.set();
  consumer.join();
  EXPECT_THAT(verdict(slowed(now)), HasSubstr("Memory is the bottleneck"));
}

TEST(VerdictOfARun, NamesSlowItemsThatOthersWaitBehind) {
  runtime runtime({.threads = 2});
  test::gate gate;
  auto hold = [&](int i) {
    if (i == 20) gate.pass();
    return i;
  };
  auto items =
      runtime.run(from(up_to(40)) | map(hold, {.concurrency = 2, .buffer = 4, .name = "fetch"}));
  std::thread consumer([&] {
    gate.wait_for(1);
    test::wait_until([&] {
      auto now = items.statistics();
      return now.elapsed > 110ms &&
             now.consumer_wait > now.elapsed * 9 / 10;  // long enough to judge
    });
    gate.open();
  });
  collect(items);
  consumer.join();
  EXPECT_THAT(verdict(items.statistics()), StartsWith("Slow items block fetch"));
}

TEST(VerdictOfARun, NamesASequentialStageBehindAConcurrentOne) {
  runtime runtime({.threads = 2});
  test::gate gate;
  auto hold = [&](int) {
    gate.pass();
    return true;
  };
  auto text = verdict_while(
      runtime, from(up_to(60)) | quick("quick") | filter(hold), 0, [&] { gate.wait_for(1); },
      [&] { gate.open(); });
  EXPECT_THAT(text, HasSubstr("filter is the bottleneck: it runs inline, busy 100 % of the time"));
}

}  // namespace lade::stats_test
