#include "progress.hpp"

#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

using namespace std::chrono_literals;

static bool can_redraw() {
  auto* terminal = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && terminal && terminal != std::string_view("dumb");
}

static std::size_t terminal_columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

// Prints in one write, so that output of other threads is not in between.
static void put(std::string_view text) {
  while (!text.empty()) {
    auto written = write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

static std::string repeat(std::string_view text, std::size_t times) {
  std::string all;
  while (times-- > 0) all += text;
  return all;
}

// A bar of `columns` characters. Half a character is as fine as it gets.
static std::string bar(double share, std::size_t columns) {
  auto halves = static_cast<std::size_t>(std::lround(share * static_cast<double>(2 * columns)));
  bool half = halves % 2 != 0;
  auto rest = columns - halves / 2 - (half ? 1 : 0);
  bool unicode = nl_langinfo(CODESET) == std::string_view("UTF-8");
  return fmt::format("\x1b[32m{}{}\x1b[90m{}\x1b[0m", repeat(unicode ? "━" : "=", halves / 2),
                     half ? (unicode ? "╸" : "-") : "", repeat(unicode ? "━" : ".", rest));
}

static std::string clock_time(double seconds) {
  auto whole = static_cast<std::uint64_t>(std::max(seconds, 0.0));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

// A line of at most `columns` characters. `figures` are dropped from the last one on, until the bar
// has some length.
static std::string line(const std::string& label, std::vector<std::string> figures, double share,
                        std::size_t columns) {
  constexpr std::size_t shortest_bar = 10;
  auto taken = [&] {
    auto sum = label.empty() ? 0 : label.size() + 2;
    for (auto& each : figures) sum += each.size() + 2;
    return sum;
  };
  while (!figures.empty() && taken() + shortest_bar > columns) figures.pop_back();
  if (taken() + shortest_bar > columns) return label.substr(0, columns);
  auto text = label + (label.empty() ? "" : "  ") + bar(share, columns - taken());
  for (auto& each : figures) text += "  " + each;
  return text;
}

progress::progress(std::function<status()> look) : look_(std::move(look)) {
  thread_ = std::jthread([this](const std::stop_token& stop) { redraw(stop); });
}

void progress::redraw(const std::stop_token& stop) {
  const bool visible = can_redraw();
  std::unique_lock lock(mutex_);
  while (!tick_.wait_for(lock, stop, 100ms, [&] { return stop.stop_requested(); })) {
    auto now = look_();
    if (visible) draw(now);
  }
  if (visible) put(rewind(terminal_columns()) + "\x1b[K");
}

void progress::draw(const status& now) {
  remember(now);
  auto share = now.total ? static_cast<double>(now.items) / static_cast<double>(now.total) : 0;
  auto columns = terminal_columns();
  auto used = columns - std::min<std::size_t>(columns, 3);  // a ^C is echoed behind the line
  auto text = line(now.what, figures(now), std::min(share, 1.0), used);
  put(rewind(columns) + text + "\x1b[K");
  drawn_ = used;
}

// Goes to the beginning of the line. A terminal that has become narrower shows it in several rows.
std::string progress::rewind(std::size_t columns) const {
  auto rows_above = drawn_ > 0 ? (drawn_ - 1) / columns : 0;
  return rows_above > 0 ? fmt::format("\x1b[{}A\r\x1b[J", rows_above) : "\r";
}

void progress::remember(const status& now) {
  recent_.push_back({clock::now(), now.items, now.bytes});
  while (recent_.size() > 2 && recent_.back().time - recent_.front().time > 3s) recent_.pop_front();
}

std::vector<std::string> progress::figures(const status& now) const {
  std::vector<std::string> all;
  if (now.total > 0) all.push_back(fmt::format("{:>3} %", now.items * 100 / now.total));
  auto& first = recent_.front();
  auto& last = recent_.back();
  auto seconds = std::chrono::duration<double>(last.time - first.time).count();
  if (seconds <= 0 || last.items == first.items) return all;

  auto speed = static_cast<double>(last.items - first.items) / seconds;
  all.push_back(fmt::format("{:>6} {}/s", grouped(static_cast<std::uint64_t>(speed)), now.unit));
  if (last.bytes > first.bytes)
    all.push_back(fmt::format("{:>4.0f} MB/s",
                              static_cast<double>(last.bytes - first.bytes) / 1e6 / seconds));
  if (now.items <= now.total)
    all.push_back(clock_time(static_cast<double>(now.total - now.items) / speed) + " left");
  return all;
}
