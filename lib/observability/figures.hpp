// Figures as people read them.

#pragma once

#include <lade/stats.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace lade::detail {

// What part of a time another is, 0 if there is none; how much of the time a stage's workers work,
// or the stage itself does if it has none.
double share(std::chrono::nanoseconds part, std::chrono::nanoseconds whole);
double utilisation(const stage_statistics& stage, const run_statistics& run);

// Sets the quantiles that are given for the durations of calls.
void take_quantiles(stage_statistics& stage);

std::string percent(double part);                       // 0.5 -> "50 %", at most "100 %"
std::string grouped(std::uint64_t number);              // 1234567 -> "1,234,567"
std::string short_time(std::chrono::nanoseconds time);  // "1.25 ms"; "-" for none
std::string short_rate(double per_second);              // "0.25", "12.5", "1,250"
std::string short_bytes(std::uint64_t bytes);           // "1.3 GiB"
std::string clock_time(std::chrono::nanoseconds time);  // "1:02:03", "2:03"

// Rows of as many cells each, the first column to the left, the others to the right.
using table_row = std::vector<std::string>;
std::string aligned(const std::vector<table_row>& rows);

}  // namespace lade::detail
