#include <lade/error.hpp>
#include <lade/metrics.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <sstream>
#include <string>

namespace lade::metrics_test {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing::ThrowsMessage;

static run_statistics two_stages() {
  run_statistics run;
  run.elapsed = 10s;
  run.delivered = 100;
  run.consumer_wait = 2500ms;
  run.output_wait = 500ms;
  run.depth = 3;
  stage_statistics stage;
  stage.name = "map";
  stage.workers = 4;
  stage.slots = 16;
  stage.depth = 5;
  stage.out = 200;
  stage.busy = stage.returned = 1500ms;
  stage.p99 = 2ms;
  stage.durations.counts[10] = 200;
  run.stages = {stage, stage};
  run.stages[1].name = "map (2)";
  return run;
}

TEST(Prometheus, ExportsARunInBaseUnits) {
  auto text = to_prometheus(two_stages(), {{"run", "train"}});
  EXPECT_THAT(text, HasSubstr("# HELP lade_run_items_total Items delivered to the consumer.\n"
                              "# TYPE lade_run_items_total counter\n"
                              "lade_run_items_total{run=\"train\"} 100\n"));
  EXPECT_THAT(text, HasSubstr("lade_run_consumer_wait_seconds_total{run=\"train\"} 2.5\n"));
  EXPECT_THAT(text, HasSubstr("lade_run_output_wait_seconds_total{run=\"train\"} 0.5\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE lade_run_depth gauge\nlade_run_depth{run=\"train\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("lade_stage_busy_seconds_total{run=\"train\",stage=\"map\"} 1.5\n"));
}

TEST(Prometheus, NumbersStagesWithTheSameName) {
  auto text = to_prometheus(two_stages());
  EXPECT_THAT(text, HasSubstr("lade_stage_items_total{stage=\"map\"} 200\n"
                              "lade_stage_items_total{stage=\"map (2)\"} 200\n"));
}

TEST(Prometheus, ExportsDepthAndSlotsOfAStage) {
  auto text = to_prometheus(two_stages());
  EXPECT_THAT(text,
              HasSubstr("# TYPE lade_stage_depth gauge\nlade_stage_depth{stage=\"map\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("lade_stage_slots{stage=\"map\"} 16\n"));
}

TEST(Prometheus, DurationsAreASummary) {
  auto text = to_prometheus(two_stages());
  EXPECT_THAT(text, HasSubstr("# TYPE lade_stage_item_seconds summary\n"));
  EXPECT_THAT(text, HasSubstr("lade_stage_item_seconds{stage=\"map\",quantile=\"0.99\"} 0.002\n"));
  EXPECT_THAT(text, HasSubstr("lade_stage_item_seconds_sum{stage=\"map\"} 1.5\n"
                              "lade_stage_item_seconds_count{stage=\"map\"} 200\n"));
}

TEST(Prometheus, InlineStagesHaveTheDurationsOfTheirCalls) {
  auto run = two_stages();
  run.stages[0].workers = run.stages[1].workers = 0;
  run.stages[1].durations = {};
  auto text = to_prometheus(run);
  EXPECT_THAT(text, HasSubstr("lade_stage_item_seconds{stage=\"map\",quantile=\"0.99\"} 0.002\n"));
  EXPECT_THAT(text, Not(HasSubstr("lade_stage_item_seconds{stage=\"map (2)\"")));
}

TEST(Prometheus, OmitsUnknownFiguresOfTheProcess) {
  process_statistics some;
  some.rss_bytes = 4096;
  some.cpu_user = 1500ms;
  EXPECT_EQ(to_prometheus(some),
            "# HELP process_resident_memory_bytes Memory in use.\n"
            "# TYPE process_resident_memory_bytes gauge\n"
            "process_resident_memory_bytes 4096\n"
            "# HELP process_cpu_user_seconds_total CPU time outside of the kernel.\n"
            "# TYPE process_cpu_user_seconds_total counter\n"
            "process_cpu_user_seconds_total 1.5\n");
}

TEST(Metrics, KeepTheSamplesOfSeveralRunsTogether) {
  metrics all;
  all.add(two_stages(), {{"run", "train"}});
  all.add(read_process_statistics());
  all.add(two_stages(), {{"run", "validate"}});
  std::istringstream lines(all.text());
  std::set<std::string> ended;
  std::string now;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("# HELP ")) {
      auto name = line.starts_with("# TYPE ") ? line.substr(7) : line;
      EXPECT_THAT(name, StartsWith(now));
      continue;
    }
    ended.insert(now);
    now = line.substr(7, line.find(' ', 7) - 7);
    EXPECT_FALSE(ended.contains(now)) << now;
  }
  EXPECT_THAT(all.text(), HasSubstr("lade_run_items_total{run=\"train\"} 100\n"
                                    "lade_run_items_total{run=\"validate\"} 100\n"));
}

TEST(Metrics, EscapeLabelsAndHelp) {
  metrics all;
  all.add("loss", metric_type::gauge, "a\nb \"c\" \\", 1, {{"model", "a\"b\\c\nd"}});
  EXPECT_EQ(all.text(),
            "# HELP loss a\\nb \"c\" \\\\\n# TYPE loss gauge\n"
            "loss{model=\"a\\\"b\\\\c\\nd\"} 1\n");
}

TEST(Metrics, AcceptInfinitiesAndNaN) {
  metrics all;
  for (auto value :
       {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN(), 1e-9})
    all.add("x", metric_type::gauge, "x", value);
  EXPECT_THAT(all.text(), HasSubstr("x +Inf\nx -Inf\nx NaN\nx 1e-09\n"));
}

TEST(Metrics, RefuseNamesThatPrometheusWouldRefuse) {
  metrics all;
  for (auto* name : {"", "1x", "a b", "a-b", "ä"})
    EXPECT_THAT([&] { all.add(name, metric_type::gauge, "", 1); },
                ThrowsMessage<error>("metrics: \"" + std::string(name) + "\" names no metric"));
  for (auto* label : {"", "1x", "a:b", "a b"})
    EXPECT_THAT([&] { all.add("x", metric_type::gauge, "", 1, {{label, ""}}); },
                ThrowsMessage<error>("x: \"" + std::string(label) + "\" names no label"));
  EXPECT_EQ(all.text(), "");
  all.add("a:b_1", metric_type::gauge, "", 1);
}

TEST(Metrics, RefuseASecondTypeOfOneName) {
  metrics all;
  all.add("x", metric_type::gauge, "", 1);
  EXPECT_THAT([&] { all.add("x", metric_type::counter, "", 1); },
              ThrowsMessage<error>("x: is a gauge"));
}

}  // namespace lade::metrics_test
