#include <lade/detail/common/alias_table.hpp>
#include <lade/support/require.hpp>

#include <algorithm>
#include <bit>
#include <numeric>

namespace lade::detail {

// The weights divided by their mean.
static std::vector<double> around_one(std::vector<double> weights, const char* doing) {
  support::require_weights(doing, weights);
  auto most = std::ranges::max(weights);
  for (auto& each : weights) each /= most;  // keeps the sum finite
  auto sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (auto& each : weights) each *= static_cast<double>(weights.size()) / sum;
  return weights;
}

alias_table::alias_table(const std::vector<double>& weights, const char* doing) {
  auto left = around_one(weights, doing);
  auto heaviest = static_cast<std::uint64_t>(std::ranges::max_element(left) - left.begin());
  columns_.resize(left.size(), column{1, heaviest});
  std::vector<std::uint64_t> below;
  std::vector<std::uint64_t> above;
  for (std::uint64_t i = 0; i < left.size(); ++i) (left[i] < 1 ? below : above).push_back(i);
  while (!below.empty() && !above.empty()) {
    auto light = below.back();
    auto heavy = above.back();
    below.pop_back();
    columns_[light] = {left[light], heavy};
    left[heavy] -= 1 - left[light];
    if (left[heavy] >= 1) continue;
    above.pop_back();
    below.push_back(heavy);
  }
  // Without rounding errors, the shares left over would be 1; those of zero weights stay 0.
  for (auto light : below) columns_[light].share = weights[light] > 0 ? 1 : 0;
  for (auto& each : columns_)
    digest_ = scramble(scramble(digest_ ^ std::bit_cast<std::uint64_t>(each.share)) ^ each.other);
}

}  // namespace lade::detail
