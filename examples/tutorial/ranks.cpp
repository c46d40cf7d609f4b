// One of several processes that train together, and its part of an epoch.

#include <lade/lade.hpp>

#include <cstdint>
#include <functional>
#include <iostream>

constexpr std::uint64_t global_batch = 6;

int main() {
  lade::runtime runtime;
  auto rank = lade::rank_from_environment();
  auto batches = lade::from_index(20, std::identity()) | lade::shuffle({.seed = 7}) |
                 lade::shard(rank) | lade::batch(lade::batch_size_of_rank(global_batch, rank));

  std::cout << "rank " << rank.rank << " of " << rank.world << ", " << batches.size().value()
            << " steps:";
  for (auto& batch : runtime.run(batches)) {
    for (auto number : batch) std::cout << " " << number;
    std::cout << ";";
  }
  std::cout << "\n";
}
