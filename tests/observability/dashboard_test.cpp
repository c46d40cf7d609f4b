#include <lade/dashboard.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>
#include <string>

#include <fcntl.h>
#include <pty.h>
#include <unistd.h>

namespace lade::dashboard_test {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

static run_report report_of(const std::string& stage_name) {
  run_report report;
  stage_statistics stage;
  stage.name = stage_name;
  stage.workers = 2;
  stage.slots = 4;
  stage.out = 2500;
  stage.busy = stage.returned = 4s;
  report.interval.elapsed = 2s;
  report.interval.delivered = 2500;
  report.interval.consumer_wait = 1s;
  report.interval.threads = 2;
  report.interval.cpus = 4;
  report.interval.stages = {stage};
  report.total = report.interval;
  report.total.elapsed = 3723s;
  report.total.delivered = 4'500'000;
  report.process.rss_bytes = (std::uint64_t{3} << 30) / 2;
  return report;
}

TEST(Dashboard, ShowsSpeedStagesMemoryAndTheVerdict) {
  auto text = render(report_of("decode"), 200);
  EXPECT_THAT(text, StartsWith("1:02:03  4,500,000 items  1,250 per s  ready 50 %  1.5 GiB\n"));
  EXPECT_THAT(text, HasSubstr("\nstage   workers"));
  EXPECT_THAT(text, HasSubstr("\ndecode        2"));
  EXPECT_THAT(text, EndsWith("\ndecode is the bottleneck: 2 workers busy 100 % of the time: more "
                             "threads would help.\n"));
}

TEST(Dashboard, TheLastDrawingIsOfTheWholeRun) {
  auto report = report_of("decode");
  report.last = true;
  report.total.stages[0].name = "all of decode";
  auto text = render(report, 200);
  EXPECT_THAT(text, StartsWith("1:02:03  4,500,000 items  1,209 per s  ready 100 %  1.5 GiB\n"));
  EXPECT_THAT(text, HasSubstr("\nall of decode  "));
  EXPECT_THAT(one_line(report), HasSubstr("1,209 per s"));
}

// A byte of UTF-8 that begins a character.
static std::size_t characters(const std::string& text) {
  std::size_t count = 0;
  for (char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

TEST(Dashboard, NoLineIsLongerThanTheTerminal) {
  for (std::size_t columns : {0u, 1u, 7u, 20u, 40u, 80u}) {
    std::istringstream lines(render(report_of("größer"), columns));
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(characters(line), std::max<std::size_t>(columns, 1)) << line;
  }
}

TEST(Dashboard, TheVerdictIsBrokenBetweenWords) {
  EXPECT_THAT(
      render(report_of("decode"), 40),
      EndsWith("\ndecode is the bottleneck: 2 workers busy\n100 % of the time: more threads "
               "would\nhelp.\n"));
}

static run_report report_of_stages(int count) {
  auto report = report_of("stage 1");
  for (int i = 2; i <= count; ++i) {
    report.interval.stages.push_back(report.interval.stages[0]);
    report.interval.stages.back().name = "stage " + std::to_string(i);
  }
  return report;
}

TEST(Dashboard, OmitsTheFirstStagesIfLinesAreShort) {
  auto report = report_of_stages(20);
  auto all = render(report, 200);
  EXPECT_EQ(std::ranges::count(all, '\n'), 23);
  EXPECT_EQ(render(report, 200, 23), all);
  auto some = render(report, 200, 8);
  EXPECT_EQ(std::ranges::count(some, '\n'), 8);
  EXPECT_THAT(some, AllOf(HasSubstr("\nstage     workers"), HasSubstr("\n(16 more)\nstage 17 "),
                          HasSubstr("\nstage 20 "), EndsWith("threads would help.\n")));
}

TEST(Dashboard, NeverExceedsTheNumberOfLines) {
  for (std::size_t lines = 0; lines < 30; ++lines)
    for (std::size_t columns : {1u, 20u, 200u})
      EXPECT_LE(std::ranges::count(render(report_of_stages(20), columns, lines), '\n'),
                static_cast<std::ptrdiff_t>(lines));
}

TEST(Dashboard, LeavesOutMemoryThatIsNotKnown) {
  auto report = report_of("decode");
  report.process = {};
  EXPECT_THAT(render(report, 200), HasSubstr("ready 50 %\n"));
}

// So many lines. A terminal hands on what is written to it in pieces.
static std::string read_lines(int from, std::ptrdiff_t lines) {
  std::string text;
  std::array<char, 8192> piece;
  while (std::ranges::count(text, '\n') < lines) {
    auto count = read(from, piece.data(), piece.size());
    if (count <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
  return text;
}

TEST(Dashboard, WritesALineForEachReportWhereThereIsNoTerminal) {
  std::array<int, 2> ends;
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  dashboard board(ends[1]);
  auto report = report_of("decode");
  board(report);
  board(report);
  auto line = one_line(report) + "\n";
  EXPECT_EQ(read_lines(ends[0], 2), line + line);
  EXPECT_THAT(line, StartsWith("lade: 1:02:03  4,500,000 items"));
  close(ends[0]);
  close(ends[1]);
}

class DashboardOnATerminal : public testing::Test {
 protected:
  void SetUp() override {
    if (openpty(&ours, &terminal, nullptr, nullptr, &size) != 0) GTEST_SKIP() << "no terminals";
    setenv("TERM", "xterm", 1);
  }
  void TearDown() override {
    close(ours);
    close(terminal);
  }

  // What a dashboard draws of a report.
  std::string drawn_by(dashboard& board, const run_report& report) const {
    auto lines = std::ranges::count(render(report, size.ws_col, size.ws_row - 1u), '\n');
    board(report);
    return read_lines(ours, lines);
  }

  int ours = -1;
  int terminal = -1;
  winsize size{.ws_row = 20, .ws_col = 200, .ws_xpixel = 0, .ws_ypixel = 0};
};

TEST_F(DashboardOnATerminal, CopiesDrawOverEachOtherUntilALastReport) {
  dashboard first(terminal);
  auto second = first;
  auto report = report_of("decode");
  EXPECT_THAT(drawn_by(first, report), StartsWith("\r\x1b[J"));
  EXPECT_THAT(drawn_by(second, report), StartsWith("\x1b["));
  report.last = true;
  EXPECT_THAT(drawn_by(first, report), StartsWith("\x1b["));
  EXPECT_THAT(drawn_by(second, report), StartsWith("\r\x1b[J"));
}

TEST_F(DashboardOnATerminal, DrawsOverItself) {
  dashboard board(terminal);
  auto report = report_of("decode");
  EXPECT_THAT(drawn_by(board, report), AllOf(StartsWith("\r\x1b[J1:02:03"), Not(HasSubstr("A\r"))));
  EXPECT_THAT(drawn_by(board, report), StartsWith("\x1b[4A\r\x1b[J1:02:03"));
  drawn_by(board, report_of_stages(100));
  auto all_but_the_last_line = size.ws_row - 1;
  EXPECT_THAT(drawn_by(board, report),
              StartsWith("\x1b[" + std::to_string(all_but_the_last_line) + "A\r"));
}

TEST(Dashboard, SurvivesAWriteFailure) { dashboard(-1)(report_of("decode")); }

}  // namespace lade::dashboard_test
