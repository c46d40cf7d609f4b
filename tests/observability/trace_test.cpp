#include <lade/batch.hpp>
#include <lade/chain.hpp>
#include <lade/cut.hpp>
#include <lade/error.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/io/file.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/route.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sample.hpp>
#include <lade/tee.hpp>
#include <lade/thread_pool.hpp>
#include <lade/trace.hpp>
#include <lade/waiting_items.hpp>

#include "../support/caught_errors.hpp"
#include "../support/json.hpp"
#include "../support/pipelines.hpp"
#include "../support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <deque>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace lade::trace_test {

using namespace test;
using testing::AllOf;
using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;
using testing::ThrowsMessage;
using testing_support::temp_dir;

static std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

static auto count_of(const std::vector<std::string>& lines, const std::string& part) {
  return std::ranges::count_if(lines,
                               [&](auto& line) { return line.find(part) != std::string::npos; });
}

TEST(Trace, IsAListOfEvents) {
  temp_dir dir;
  { trace empty(dir / "trace"); }
  auto lines = lines_of(dir / "trace");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines.front(), "[");
  EXPECT_THAT(lines[1], AllOf(StartsWith("{\"ph\":\"M\","), EndsWith("}")));
  EXPECT_EQ(lines.back(), "]");
}

TEST(Trace, HasASpanForEveryItemAndStageAndArrowsBetween) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto add = [](int i) { return i + 1; };
  auto made = from(numbers{50}) | map(add, {.concurrency = 2, .name = "first"}) |
              map(add, {.concurrency = 2, .name = "second"}) | batch(10);
  {
    trace record(dir / "trace");
    collect(runtime, made, {.trace = &record});
  }
  auto lines = lines_of(dir / "trace");
  EXPECT_EQ(count_of(lines, "{\"name\":\"first\"}"), 2);
  EXPECT_EQ(count_of(lines, "{\"name\":\"second\"}"), 2);
  EXPECT_EQ(count_of(lines, "\"ph\":\"X\""), 50 + 50 + 5);
  EXPECT_EQ(count_of(lines, "\"ph\":\"s\""), 50);
  EXPECT_EQ(count_of(lines, "\"ph\":\"t\""), 50);
  EXPECT_EQ(count_of(lines, "\"ph\":\"f\""), 50);
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("consumer"), HasSubstr("\"positions\":\"40-49\""))));
}

TEST(Trace, HasASpanForEveryCallOfAnInlineStage) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto add = [](int i) { return i + 1; };
  auto twice = [](int i) { return std::vector<int>{i, i}; };
  auto made = from(numbers{50}) | map(add, {.concurrency = 1, .name = "first"}) |
              map(add, {.concurrency = 2, .name = "second"}) | flat_map(twice, {.name = "third"});
  {
    trace record(dir / "trace");
    EXPECT_EQ(collect(runtime, made, {.trace = &record}).size(), 100u);
  }
  auto lines = lines_of(dir / "trace");
  for (auto stage : {"first", "third"})
    EXPECT_EQ(count_of(lines, "{\"name\":\"" + std::string(stage) + "\"}"), 1) << stage;
  auto ends_of_items = 50;
  EXPECT_EQ(count_of(lines, "\"ph\":\"X\""), 50 + 50 + 100 + ends_of_items + 100);
  EXPECT_EQ(count_of(lines, "\"ph\":\"s\""), 50);
}

TEST(Trace, HasATrackForEachOfSeveralItemsThatAreSplit) {
  temp_dir dir;
  runtime runtime({.threads = 4});
  gate three;
  auto twice = [&three](int i) {
    three.pass();
    return std::vector<int>{i, i};
  };
  auto made = from(numbers{50}) | flat_map(twice, {.concurrency = 3, .name = "apart"});
  {
    trace record(dir / "trace");
    auto items = runtime.run(made, {.trace = &record});
    three.wait_for(3);
    three.open();
    EXPECT_EQ(collect(items).size(), 100u);
  }
  auto lines = lines_of(dir / "trace");
  EXPECT_EQ(count_of(lines, "{\"name\":\"apart\"}"), 3);
  auto ends_of_items = 50;
  EXPECT_EQ(count_of(lines, "\"ph\":\"X\""), 100 + ends_of_items + 100);
}

TEST(Trace, TheArrowsOfAnItemBeginWithItsFirstCall) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto count_arrows = [&](auto stage) {
    {
      trace record(dir / "trace");
      EXPECT_EQ(collect(runtime, from(numbers{20}) | stage, {.trace = &record}).size(), 40u);
    }
    return count_of(lines_of(dir / "trace"), "\"ph\":\"s\"");
  };
  auto twice = [](int i) { return std::vector<int>{i, i}; };
  EXPECT_EQ(count_arrows(flat_map(twice)), 20);
  EXPECT_EQ(count_arrows(flat_map(twice, {.concurrency = 2})), 20);
  std::atomic<int> calls = 0;
  auto at_the_second_attempt = [&](int i) {
    if (++calls % 2 == 1) throw std::runtime_error("again");
    return i;
  };
  auto retried =
      map(at_the_second_attempt, {.concurrency = 1, .retry = {.attempts = 2, .pause = {}}});
  EXPECT_EQ(count_arrows(chain(retried, flat_map(twice))), 20);
}

// The numbers of the arrows that have events of this kind.
static std::set<std::string> arrows_of(const std::vector<std::string>& lines, char kind) {
  std::set<std::string> ids;
  for (auto& line : lines)
    if (line.starts_with(std::string("{\"ph\":\"") + kind))
      ids.insert(line.substr(0, line.find('}')).substr(line.find("\"id\":")));
  return ids;
}

TEST(Trace, AnArrowBeginsOnceForEveryItemWhicheverStageSeesItFirst) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto add = [](int i) { return i + 1; };
  auto numbered = [&](const char* name) {
    return from(up_to(20)) | map(add, {.concurrency = 2, .name = name});
  };
  auto sum = [](const std::tuple<int, int>& both) { return std::get<0>(both) + std::get<1>(both); };
  auto parity = [](int i) { return i % 2; };
  auto routed =
      from(up_to(40)) | route(parity, map(add, {.concurrency = 1}), map(add, {.concurrency = 2}));
  auto zipped = zip(numbered("a"), numbered("b")) | map(sum);
  auto merged = merge(std::vector<pipeline<int>>{numbered("a"), numbered("b")});
  auto repeated = from(numbers{20}) | map(add, {.concurrency = 2}) | repeat(2);
  auto divided = from(up_to(40)) | tee(map(add, {.concurrency = 2}), map(add)) | map(sum);
  auto check = [&](const auto& made, const char* what) {
    {
      trace record(dir / "trace");
      collect(runtime, made, {.trace = &record});
    }
    auto lines = lines_of(dir / "trace");
    EXPECT_EQ(count_of(lines, "\"ph\":\"s\""), 40) << what;
    EXPECT_THAT(arrows_of(lines, 's'), SizeIs(40)) << what;
    EXPECT_EQ(arrows_of(lines, 's'), arrows_of(lines, 'f')) << what;
    EXPECT_EQ(count_of(lines, "\"ph\":\"f\""), 40) << what;
  };
  check(routed, "route");
  check(zipped, "zip");
  check(merged, "merge");
  check(repeated, "repeat");
  check(divided, "tee");
}

// Holds up to three items, and ends the first one when no other comes. Those with a key that seven
// divides must be tried again.
struct first_of_three {
  static constexpr unsigned items_at_a_time = 3;

  sample operator()(const sample& item) const { return item; }
  void operator()(waiting_items<sample, sample>& items) const {
    std::deque<taken_item<sample, sample>> all;
    while (true) {
      while (auto next = items.next()) all.push_back(*std::move(next));
      if (all.empty()) return;
      if (std::stoi(all.front()->key()) % 7 == 0)
        all.front().fail(std::make_exception_ptr(std::runtime_error("again")));
      else
        all.front().give(sample(*all.front()));
      all.pop_front();
    }
  }
};

struct traced_span {
  std::string track;
  std::string name;
  std::string positions;
  std::int64_t begin = 0;  // ns
  std::int64_t end = 0;
};

// What stands in a line behind `before`.
static std::string part_of(const std::string& line, const std::string& before) {
  const auto at = line.find(before) + before.size();
  return line.substr(at, line.find_first_of(",}\"", at) - at);
}
static std::int64_t nanoseconds_of(const std::string& line, const std::string& before) {
  return std::llround(std::stod(part_of(line, before)) * 1000);
}

static std::vector<traced_span> spans_of(const std::vector<std::string>& lines) {
  std::vector<traced_span> all;
  for (const auto& line : lines) {
    if (!line.starts_with("{\"ph\":\"X\"")) continue;
    const auto begin = nanoseconds_of(line, "\"ts\":");
    all.push_back({.track = part_of(line, "\"tid\":"),
                   .name = part_of(line, "\"name\":\""),
                   .positions = part_of(line, "\"positions\":\""),
                   .begin = begin,
                   .end = begin + nanoseconds_of(line, "\"dur\":")});
  }
  std::ranges::sort(all, {}, &traced_span::begin);
  return all;
}

// Those on the tracks of a stage.
static std::vector<traced_span> spans_of(const std::vector<std::string>& lines,
                                         const std::string& stage) {
  std::set<std::string> tracks;
  for (const auto& line : lines)
    if (line.find("\"thread_name\",\"args\":{\"name\":\"" + stage + "\"") != line.npos)
      tracks.insert(part_of(line, "\"tid\":"));
  auto all = spans_of(lines);
  std::erase_if(all, [&](auto& span) { return !tracks.contains(span.track); });
  return all;
}

TEST(Trace, NamesStagesOfOneNameAsTheStatisticsDo) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto add = [](int i) { return i + 1; };
  auto is_even = [](int i) { return i % 2 == 0; };
  auto made = from(numbers{6}) | map(add, {.concurrency = 2}) | filter(is_even) | repeat(2) |
              map(add, {.concurrency = 2});
  {
    trace record(dir / "trace");
    EXPECT_THAT(collect(runtime, made, {.trace = &record}), SizeIs(6));
  }
  auto lines = lines_of(dir / "trace");
  EXPECT_THAT(spans_of(lines, "map"), SizeIs(12));
  EXPECT_THAT(spans_of(lines, "map (2)"), SizeIs(6));
  for (std::string stage : {"map", "map (2)"})
    EXPECT_GT(count_of(lines, "\"name\":\"" + stage + "\",\"args\":{\"waiting\""), 0) << stage;
}

static bool some_overlap(const std::vector<traced_span>& spans) {
  for (std::size_t i = 1; i < spans.size(); ++i)
    if (spans[i].begin < spans[i - 1].end) return true;
  return false;
}

// Of 50 items with the keys 100, 101, ..., of which several have waited for the worker.
static std::vector<std::string> trace_of_several() {
  temp_dir dir;
  thread_pool own({.threads = 1});
  runtime runtime({.threads = 2});
  map_options options{
      .concurrency = 2, .retry = {.attempts = 2, .pause = {}}, .pool = &own, .name = "several"};
  auto keyed = [](int i) { return sample(std::to_string(i + 100)); };
  auto made = from(numbers{50}) | map(keyed, {.concurrency = 1}) | map(first_of_three(), options);
  while (true) {
    {
      trace record(dir / "trace");
      collect(runtime, made, {.trace = &record});
    }
    auto lines = lines_of(dir / "trace");
    if (some_overlap(spans_of(lines, "several"))) return lines;
  }
}

TEST(Trace, SpansOfSeveralItemsAtATimeHaveTracksOnWhichTheyDoNotOverlap) {
  const auto lines = trace_of_several();
  std::map<std::string, std::int64_t> end_on;  // each track
  std::map<std::string, int> calls_for;
  for (const auto& span : spans_of(lines, "several")) {
    EXPECT_LE(end_on[span.track], span.begin) << "track " << span.track;
    end_on[span.track] = span.end;
    EXPECT_EQ(std::stoi(span.name), std::stoi(span.positions) + 100);
    ++calls_for[span.name];
  }
  EXPECT_THAT(calls_for, SizeIs(50));
  for (const auto& [name, calls] : calls_for)
    EXPECT_EQ(calls, std::stoi(name) % 7 == 0 ? 2 : 1) << name;
  EXPECT_EQ(count_of(lines, "{\"name\":\"several\"}"), 3) << "one worker, three items at a time";
}

TEST(Trace, ArrowsOfSeveralItemsAtATimeLeadFromSpanToSpan) {
  const auto lines = trace_of_several();
  std::set<std::pair<std::string, std::int64_t>> begins;
  for (const auto& span : spans_of(lines)) begins.emplace(span.track, span.begin);
  int arrows = 0;
  for (const auto& line : lines) {
    if (line.find("\"cat\":\"item\"") == line.npos) continue;
    ++arrows;
    EXPECT_TRUE(begins.contains({part_of(line, "\"tid\":"), nanoseconds_of(line, "\"ts\":")}))
        << line;
  }
  EXPECT_EQ(arrows, 3 * 50 + 7) << "before, in and behind the stage, and 7 that are tried again";
}

TEST(Trace, AnArrowEndsWhereItsItemDoes) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto add = [](int i) { return i + 1; };
  auto odd = [](int i) { return i % 2 == 1; };
  auto made = from(numbers{20}) | map(add, {.concurrency = 1}) |
              filter(odd, {.concurrency = 2, .name = "odd"});
  {
    trace record(dir / "trace");
    collect(runtime, made, {.trace = &record});
    collect(runtime, from(numbers{5}), {.trace = &record});  // one span for each item
    auto left = runtime.run(made, {.trace = &record});
    left.wait_next();
  }
  auto lines = lines_of(dir / "trace");
  EXPECT_EQ(arrows_of(lines, 's'), arrows_of(lines, 'f'));
  EXPECT_GE(count_of(lines, "\"ph\":\"s\""), 21) << "arrows of two runs have different numbers";
  EXPECT_THAT(arrows_of(lines, 's'), SizeIs(count_of(lines, "\"ph\":\"s\"")));
}

TEST(Trace, HasTheItemsThatEachStageHolds) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto same = [](int i) { return i; };
  auto alone = [](int i) { return std::vector{i}; };
  auto made = from(numbers{20}) | map(same, {.concurrency = 2, .name = "a"}) | prefetch(3) |
              flat_map(alone, {.concurrency = 2, .name = "b"}) |
              route([](int) { return 0; }, {.name = "c"}, map(same, {.concurrency = 1}));
  {
    trace record(dir / "trace");
    collect(runtime, made, {.trace = &record});
  }
  auto lines = lines_of(dir / "trace");
  auto curve_of = [&](const std::string& stage, const std::string& levels) {
    return count_of(lines, "\"name\":\"" + stage + "\",\"args\":{" + levels);
  };
  EXPECT_EQ(curve_of("a", "\"waiting\":"), 20);
  EXPECT_EQ(curve_of("prefetch", "\"done\":"), 20);
  EXPECT_EQ(curve_of("b", "\"working\":"), 40);
  EXPECT_EQ(curve_of("c", "\"done\":"), 20);
  EXPECT_EQ(curve_of("consumer", "\"ready\":"), 20);
}

TEST(Trace, HasASpanForEverySystemCall) {
  temp_dir dir;
  std::vector<sample> files;
  for (int i = 0; i < 3; ++i) files.emplace_back(dir.write(std::to_string(i), "content"));
  files.emplace_back(dir / "absent");
  runtime runtime({.threads = 2});
  {
    trace record(dir / "trace");
    auto all = collect(runtime, from(files) | map(io::read),
                       {.on_error = on_error::skip, .trace = &record});
    EXPECT_EQ(all.size(), 3u);
  }
  auto lines = lines_of(dir / "trace");
  auto count = [&](const std::string& phase, const std::string& name) {
    return std::ranges::count_if(lines, [&](auto& line) {
      return line.starts_with("{\"ph\":\"" + phase) &&
             line.find("\"name\":\"" + name) != line.npos && line.find("\"io\"") != line.npos;
    });
  };
  EXPECT_EQ(count("b", "open"), 4);
  EXPECT_EQ(count("e", "open"), 4);
  EXPECT_GE(count("b", "read"), 3);
  EXPECT_EQ(count("b", "read"), count("e", "read"));
  EXPECT_THAT(lines, Contains(HasSubstr("\"of\":\"" + (dir / "absent") + "\",\"result\":-2}")));
}

static std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Reads and writes, computes and takes apart.
static void run_with(trace& record, const temp_dir& dir) {
  runtime runtime({.threads = 2});
  std::vector<sample> files;
  for (int i = 0; i < 100; ++i)
    files.emplace_back(dir.write("a \"file\" " + std::to_string(i), "x"));
  auto twice = [](sample each) { return std::vector<sample>{each, each}; };
  collect(runtime, from(files) | map(io::read) | flat_map(twice, {.concurrency = 2}) | batch(10),
          {.trace = &record});
  auto span = record.span("of the\nprogram");
}

TEST(Trace, IsJson) {
  temp_dir dir;
  {
    trace record(dir / "trace");
    run_with(record, dir);
  }
  auto text = content_of(dir / "trace");
  EXPECT_TRUE(is_json(text)) << text;
}

TEST(Trace, CutOffAnywhereItsWholeLinesAreJsonButForTheBracket) {
  temp_dir dir;
  trace record(dir / "trace");
  run_with(record, dir);
  auto text = content_of(dir / "trace");  // as a crash would leave it
  ASSERT_GT(text.size(), 8000u);
  for (std::size_t size = text.size(), cut = size / 50; size > cut; size -= cut) {
    auto whole_lines = text.substr(0, text.rfind(",\n", size));
    EXPECT_TRUE(is_json(whole_lines + "]")) << whole_lines;
  }
}

TEST(Trace, AWriteFailureEndsNoRunAndIsReportedOnce) {
  temp_dir dir;
  auto why = "write /dev/full: No space left on device";
  testing_support::caught_errors errors;
  {
    trace record("/dev/full");
    run_with(record, dir);
    EXPECT_THAT([&] { record.finish(); }, ThrowsMessage<error>(why));
    record.finish();
  }
  EXPECT_EQ(errors.text(), "");
  { trace unfinished("/dev/full"); }
  EXPECT_EQ(errors.text(), "lade: " + std::string(why) + "\n");
}

TEST(Trace, DropsEventsAfterItIsFinished) {
  temp_dir dir;
  trace record(dir / "trace");
  record.finish();
  run_with(record, dir);
  EXPECT_EQ(lines_of(dir / "trace").size(), 3u);
}

TEST(Trace, TakesSpansOfTheProgram) {
  temp_dir dir;
  {
    trace record(dir / "trace");
    auto outer = record.span("a \"step\"");
    std::jthread([&] { auto inner = record.span("other thread"); });
  }
  auto lines = lines_of(dir / "trace");
  EXPECT_EQ(count_of(lines, "\"name\":\"a \\\"step\\\"\""), 1);
  EXPECT_EQ(count_of(lines, "\"name\":\"other thread\""), 1);
}

TEST(Trace, AFileThatCannotBeWrittenIsAnError) {
  temp_dir dir;
  EXPECT_THAT(
      [&] { trace record(dir / "absent/trace"); },
      ThrowsMessage<error>("open " + (dir / "absent/trace") + ": No such file or directory"));
}

}  // namespace lade::trace_test
