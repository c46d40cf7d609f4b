#include <lade/detail/observability/stage_counters.hpp>
#include <lade/stats.hpp>

#include <algorithm>
#include <bit>
#include <numeric>

namespace lade {

std::uint64_t duration_counts::total() const noexcept {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

std::chrono::nanoseconds duration_counts::quantile(double share) const noexcept {
  auto all = total();
  if (all == 0) return {};
  auto wanted = std::clamp(share, 0.0, 1.0) * static_cast<double>(all - 1);
  auto rank = std::min(static_cast<std::uint64_t>(wanted), all - 1);  // rounding can exceed it
  std::size_t bucket = 0;
  while (rank >= counts[bucket]) rank -= counts[bucket++];
  return duration_of(bucket);
}

std::chrono::nanoseconds duration_counts::duration_of(std::size_t i) noexcept {
  auto eighths = static_cast<double>(per_octave + i % per_octave) + 0.5;
  auto octave = static_cast<double>(std::uint64_t{1} << (i / per_octave));
  return std::chrono::nanoseconds(static_cast<std::int64_t>(eighths / per_octave * octave));
}

duration_counts& duration_counts::operator-=(const duration_counts& earlier) noexcept {
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] -= earlier.counts[i];
  return *this;
}

namespace detail {

// Below 8 ns, each duration has a bucket; above, each power of two has eight.
void duration_histogram::add(std::chrono::nanoseconds duration, std::uint64_t times) noexcept {
  constexpr auto per_octave = duration_counts::per_octave;
  auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(duration.count(), 1));
  auto octave = static_cast<std::size_t>(std::bit_width(value)) - 1;
  auto eighth = octave >= 3 ? (value >> (octave - 3)) & 7 : (value << (3 - octave)) & 7;
  auto bucket = std::min(octave, duration_counts::octaves - 1) * per_octave + eighth;
  counts_[bucket].fetch_add(times, std::memory_order_relaxed);
}

duration_counts duration_histogram::now() const noexcept {
  duration_counts result;
  for (std::size_t i = 0; i < counts_.size(); ++i)
    result.counts[i] = counts_[i].load(std::memory_order_relaxed);
  return result;
}

void duration_histogram::clear() noexcept {
  for (auto& each : counts_) each.store(0, std::memory_order_relaxed);
}

}  // namespace detail
}  // namespace lade
