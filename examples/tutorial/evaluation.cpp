// An evaluation by several processes: every sample counts once, though ranks differ by one.

#include <lade/lade.hpp>

#include <cstdint>
#include <functional>
#include <iostream>

static bool is_correct(std::uint64_t sample) { return sample % 5 != 0; }

int main() {
  lade::runtime runtime;
  auto rank = lade::rank_from_environment();
  rank.remainder = lade::remainder::keep;
  auto samples = lade::from_index(20, std::identity()) | lade::shard(rank);
  std::uint64_t correct = 0;
  for (auto sample : runtime.run(samples)) correct += is_correct(sample);
  std::cout << correct << " of " << samples.size().value() << " are correct\n";
}
