#include "figures.hpp"

#include <lade/support/utf8.hpp>

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace lade::detail {

double share(std::chrono::nanoseconds part, std::chrono::nanoseconds whole) {
  return whole.count() > 0 ? static_cast<double>(part.count()) / static_cast<double>(whole.count())
                           : 0;
}

double utilisation(const stage_statistics& stage, const run_statistics& run) {
  return share(stage.busy, run.elapsed) / std::max(stage.workers, 1u);
}

std::string percent(double part) {
  return fmt::format("{} %", static_cast<int>(std::min(part, 1.0) * 100 + 0.5));
}

std::string grouped(std::uint64_t number) { return fmt::format("{}", fmt::group_digits(number)); }

std::string short_time(std::chrono::nanoseconds time) {
  struct unit {
    double size;
    const char* name;
  };
  constexpr unit units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
  auto value = static_cast<double>(time.count());
  if (value <= 0) return "-";
  for (auto [size, name] : units) {
    if (value < size) continue;
    auto scaled = value / size;
    auto digits = scaled < 10 ? 2 : scaled < 100 ? 1 : 0;
    return fmt::format("{:.{}f} {}", scaled, digits, name);
  }
  return "-";
}

std::string short_rate(double per_second) {
  if (per_second >= 99.5) return grouped(static_cast<std::uint64_t>(per_second + 0.5));
  return fmt::format("{:.{}f}", per_second, per_second < 9.95 ? 2 : 1);
}

std::string short_bytes(std::uint64_t bytes) {
  auto value = static_cast<double>(bytes);
  const char* unit = "B";
  for (auto* larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = larger;
  }
  return fmt::format("{:.{}f} {}", value, value < 10 && bytes >= 1024 ? 1 : 0, unit);
}

std::string clock_time(std::chrono::nanoseconds time) {
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time).count();
  if (seconds < 3600) return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

std::string aligned(const std::vector<table_row>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], support::utf8_characters(row[i]));
  std::string text;
  for (auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::string padding(widths[i] - support::utf8_characters(row[i]), ' ');
      text += i == 0 ? row[i] + padding : "  " + padding + row[i];
    }
    text += '\n';
  }
  return text;
}

}  // namespace lade::detail
