#include <lade/shuffle.hpp>

#include <algorithm>

namespace lade::detail {

window_order::choice window_order::pick() {
  auto slot = static_cast<std::size_t>(draw_.below(slots_.size()));
  choice picked{steps_++, slots_[slot], slot};
  std::swap(slots_[slot], slots_.back());
  slots_.pop_back();
  return picked;
}

std::vector<window_order::choice> window_order::replay(const state::choices& before) {
  std::vector<choice> undelivered;
  auto ranges = before.delivered.ranges();
  while (!ranges.empty() && steps_ <= ranges.back().last) {
    while (!is_full() && (before.items == 0 || taken_ < before.items)) add();
    if (slots_.empty()) break;
    auto picked = pick();
    if (!before.delivered.contains(picked.step)) undelivered.push_back(picked);
  }
  return undelivered;
}

std::vector<std::uint64_t> window_order::undelivered(const std::vector<choice>& picked) const {
  auto numbers = slots_;
  for (auto& each : picked) numbers.push_back(each.number);
  std::ranges::sort(numbers);
  return numbers;
}

}  // namespace lade::detail
