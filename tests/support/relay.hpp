// Tasks that end in an order that a test chooses.

#pragma once

#include <lade/event.hpp>
#include <lade/random.hpp>
#include <lade/task.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace lade::test {

// The tasks turn_of(0), turn_of(1), ... end in the given order on a runtime with one reactor: each
// waits for its predecessor, and then wakes its successor. All of them must be able to wait at
// the same time.
class relay {
 public:
  explicit relay(const std::vector<int>& order) : turns_(order.size()), after_(order.size(), -1) {
    for (std::size_t i = 1; i < order.size(); ++i) after_[place(order[i - 1])] = order[i];
    turns_[place(order.front())].set();
  }

  task<> turn_of(int i) {
    co_await turns_[place(i)];
    auto next = after_[place(i)];
    if (next >= 0) turns_[place(next)].set();
  }

 private:
  static std::size_t place(int i) { return static_cast<std::size_t>(i); }

  std::vector<event> turns_;
  std::vector<int> after_;
};

// The numbers from 0 to `count` - 1, shuffled within each group of `size` successive numbers.
inline std::vector<int> mixed_in_groups(int count, int size, random draw) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (int end = size; end <= count; end += size)
    for (int left = size; left > 1; --left)
      std::swap(order[static_cast<std::size_t>(end - left)],
                order[static_cast<std::size_t>(end - left) +
                      draw.below(static_cast<std::uint64_t>(left))]);
  return order;
}

}  // namespace lade::test
