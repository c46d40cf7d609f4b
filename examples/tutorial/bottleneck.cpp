// The bottleneck of a pipeline: its figures, and the sentence that names it.

#include <lade/lade.hpp>

#include "work.hpp"

#include <functional>
#include <iostream>

int main() {
  lade::runtime runtime;
  auto batches = lade::from_index(800, std::identity()) |
                 lade::map(fetch, {.concurrency = 4, .name = "fetch"}) |
                 lade::map(decode, {.name = "decode"}) | lade::batch(16);
  std::cout << to_string(batches.describe()) << "\n";

  auto run = runtime.run(batches);
  for (auto& batch : run) train(batch);
  std::cout << table(run.statistics()) << verdict(run.statistics()) << "\n";
}
