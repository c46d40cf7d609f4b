#include "figures.hpp"

#include <lade/dashboard.hpp>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <sys/ioctl.h>
#include <unistd.h>

namespace lade {

// At most so many characters; none of UTF-8 is cut in two.
static std::string_view cut_to(std::string_view text, std::size_t columns) {
  auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  std::size_t end = 0;
  for (; end < text.size(); ++end)
    if (!continues(text[end]) && columns-- == 0) break;
  return text.substr(0, end);
}

// Lines of at most so many characters, broken at blanks where there are any.
static std::string wrapped_at(std::string_view text, std::size_t columns) {
  std::string lines;
  while (!text.empty()) {
    auto line = cut_to(text, columns);
    auto blank = line.size() < text.size() ? text.substr(0, line.size() + 1).rfind(' ') : text.npos;
    if (blank != text.npos && blank > 0) line = text.substr(0, blank);
    lines.append(line).append("\n");
    text.remove_prefix(std::min(text.size(), line.size() + (blank == line.size())));
  }
  return lines;
}

static std::string headline(const run_report& report) {
  auto text = detail::clock_time(report.total.elapsed) + "  " +
              detail::grouped(report.total.delivered) + " items  " +
              detail::short_rate(qps(report.interval)) + " per s  ready " +
              detail::percent(readiness(report.interval));
  if (report.process.rss_bytes) text += "  " + detail::short_bytes(*report.process.rss_bytes);
  return text;
}

std::string render(const run_report& report, std::size_t columns) {
  columns = std::max<std::size_t>(columns, 1);
  auto text = std::string(cut_to(headline(report), columns)) + "\n";
  auto stages = table(report.interval);
  for (std::string_view rest = stages; !rest.empty();) {
    auto end = rest.find('\n');
    text.append(cut_to(rest.substr(0, end), columns)).append("\n");
    rest.remove_prefix(end + 1);
  }
  return text + wrapped_at(verdict(report.interval), columns);
}

std::string one_line(const run_report& report) {
  return "lade: " + headline(report) + "  " + verdict(report.interval);
}

// Nothing where lines cannot be drawn over.
static std::size_t columns_of_terminal(int descriptor) {
  auto* kind = std::getenv("TERM");
  if (isatty(descriptor) == 0 || !kind || kind == std::string_view("dumb")) return 0;
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

static void write_all_to(int descriptor, std::string_view text) {
  while (!text.empty()) {
    auto written = ::write(descriptor, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void dashboard::operator()(const run_report& report) {
  auto columns = columns_of_terminal(descriptor_);
  if (columns == 0) return write_all_to(descriptor_, one_line(report) + "\n");
  auto text = render(report, columns);
  auto back = lines_ > 0 ? "\x1b[" + std::to_string(lines_) + "A" : "";
  write_all_to(descriptor_, back + "\r\x1b[J" + text);
  lines_ = static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

}  // namespace lade
