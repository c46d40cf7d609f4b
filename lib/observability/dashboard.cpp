#include "figures.hpp"

#include <lade/dashboard.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace lade {

// The first `columns` characters of a UTF-8 text.
static std::string_view cut_to(std::string_view text, std::size_t columns) {
  auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  std::size_t end = 0;
  for (; end < text.size(); ++end)
    if (!continues(text[end]) && columns-- == 0) break;
  return text.substr(0, end);
}

using drawn_lines = std::vector<std::string>;

// Breaks a text into lines of at most `columns` characters, at blanks if possible.
static drawn_lines wrapped_at(std::string_view text, std::size_t columns) {
  drawn_lines lines;
  while (!text.empty()) {
    auto line = cut_to(text, columns);
    auto blank = line.size() < text.size() ? text.substr(0, line.size() + 1).rfind(' ') : text.npos;
    if (blank != text.npos && blank > 0) line = text.substr(0, blank);
    lines.emplace_back(line);
    text.remove_prefix(std::min(text.size(), line.size() + (blank == line.size())));
  }
  return lines;
}

// The lines of table(), each cut to `columns` characters.
static drawn_lines table_lines(const run_statistics& run, std::size_t columns) {
  drawn_lines lines;
  auto stages = table(run);
  for (std::string_view rest = stages; !rest.empty();) {
    auto end = rest.find('\n');
    lines.emplace_back(cut_to(rest.substr(0, end), columns));
    rest.remove_prefix(end + 1);
  }
  return lines;
}

// If a table has more than `most` lines, replaces its first stages by a line with their number.
static void shorten(drawn_lines& stages, std::size_t most, std::size_t columns) {
  if (stages.size() <= std::max<std::size_t>(most, 2)) return;
  auto kept = std::max<std::size_t>(most, 2) - 2;
  auto left_out = stages.size() - 1 - kept;
  stages.erase(stages.begin() + 1, stages.begin() + static_cast<std::ptrdiff_t>(left_out));
  stages[1] = cut_to(fmt::format("({} more)", left_out), columns);
}

// The statistics to show: of the interval; in the last report, of the whole run.
static const run_statistics& shown_of(const run_report& report) {
  return report.last ? report.total : report.interval;
}

static std::string headline(const run_report& report) {
  auto& shown = shown_of(report);
  auto text =
      fmt::format("{}  {} items  {} per s  ready {}", detail::clock_time(report.total.elapsed),
                  detail::grouped(report.total.delivered), detail::short_rate(qps(shown)),
                  detail::percent(readiness(shown)));
  if (report.process.rss_bytes) text += "  " + detail::short_bytes(*report.process.rss_bytes);
  return text;
}

std::string render(const run_report& report, std::size_t columns, std::size_t lines) {
  columns = std::max<std::size_t>(columns, 1);
  drawn_lines all{std::string(cut_to(headline(report), columns))};
  auto stages = table_lines(shown_of(report), columns);
  auto verdict_lines = wrapped_at(verdict(shown_of(report)), columns);
  shorten(stages, lines - std::min(lines, all.size() + verdict_lines.size()), columns);
  all.insert(all.end(), stages.begin(), stages.end());
  all.insert(all.end(), verdict_lines.begin(), verdict_lines.end());
  std::string text;
  for (std::size_t i = 0; i < std::min(lines, all.size()); ++i) text += all[i] + "\n";
  return text;
}

std::string one_line(const run_report& report) {
  return fmt::format("lade: {}  {}", headline(report), verdict(shown_of(report)));
}

// Nothing if the descriptor is not a terminal that can move its cursor.
static std::optional<winsize> size_of_terminal(int descriptor) {
  auto* kind = std::getenv("TERM");
  if (isatty(descriptor) == 0 || !kind || kind == std::string_view("dumb")) return std::nullopt;
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0) size = {};
  if (size.ws_col == 0) size.ws_col = 80;
  if (size.ws_row == 0) size.ws_row = 24;
  return size;
}

static void write_all_to(int descriptor, std::string_view text) {
  while (!text.empty()) {
    auto written = ::write(descriptor, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void dashboard::operator()(const run_report& report) {
  auto size = size_of_terminal(descriptor_);
  if (!size) return write_all_to(descriptor_, one_line(report) + "\n");
  std::size_t below_the_last = 1;
  auto text = render(report, size->ws_col, size->ws_row - below_the_last);
  std::lock_guard lock(drawn_->mutex);
  auto back = drawn_->lines > 0 ? fmt::format("\x1b[{}A", drawn_->lines) : "";
  write_all_to(descriptor_, back + "\r\x1b[J" + text);
  drawn_->lines = report.last ? 0 : static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

}  // namespace lade
