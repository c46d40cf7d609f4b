#include <lade/stats.hpp>

namespace lade::detail {
void duration_histogram::add(std::chrono::nanoseconds) noexcept {}
std::chrono::nanoseconds duration_histogram::quantile(double) const noexcept { return {}; }
stage_statistics stage_counters::snapshot() const { return {}; }
}  // namespace lade::detail
