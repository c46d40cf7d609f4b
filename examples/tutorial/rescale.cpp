// Two ranks are interrupted, and three resume: every item is delivered once.

#include <lade/lade.hpp>

#include <cstdint>
#include <functional>
#include <iostream>
#include <vector>

int main() {
  lade::runtime runtime;
  auto numbers = lade::from_index(20, std::identity(), {.identity = "numbers below 20"}) |
                 lade::shuffle({.seed = 7});

  std::vector<lade::state> states;
  for (std::uint64_t rank = 0; rank < 2; ++rank) {
    auto run = runtime.run(numbers | lade::shard({.rank = rank, .world = 2}));
    std::cout << "rank " << rank << " of 2:";
    for (int i = 0; i < 4; ++i) std::cout << " " << run.wait_next().value();
    std::cout << "\n";
    states.push_back(run.state());
  }

  auto merged = lade::merge(states);
  for (std::uint64_t rank = 0; rank < 3; ++rank) {
    auto part = numbers | lade::shard({.rank = rank, .world = 3});
    std::cout << "rank " << rank << " of 3:";
    for (auto number : runtime.run(part, {.state = merged})) std::cout << " " << number;
    std::cout << "\n";
  }
}
