// Formats numbers for people.

#pragma once

#include <lade/stats.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace lade::detail {

// share(): the ratio of two times; 0 if `whole` is not positive. utilisation(): the share of time
// in which the workers of a stage were busy, or the stage itself if it runs inline.
double share(std::chrono::nanoseconds part, std::chrono::nanoseconds whole);
double utilisation(const stage_statistics& stage, const run_statistics& run);

// Sets p50, p90 and p99 from the histogram of durations.
void take_quantiles(stage_statistics& stage);

std::string percent(double part);                       // 0.5 -> "50 %", at most "100 %"
std::string grouped(std::uint64_t number);              // 1234567 -> "1,234,567"
std::string short_time(std::chrono::nanoseconds time);  // "1.25 ms"; "-" for none
std::string short_rate(double per_second);              // "0.25", "12.5", "1,250"
std::string short_bytes(std::uint64_t bytes);           // "1.3 GiB"
std::string clock_time(std::chrono::nanoseconds time);  // "1:02:03", "2:03"

// A text table. All rows have the same number of cells. The first column is left-aligned, the
// others are right-aligned.
using table_row = std::vector<std::string>;
std::string aligned(const std::vector<table_row>& rows);

}  // namespace lade::detail
