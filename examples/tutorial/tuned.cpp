// A stage that finds its concurrency itself.

#include <lade/lade.hpp>

#include "work.hpp"

#include <functional>
#include <iostream>

int main() {
  lade::runtime runtime;
  auto batches = lade::from_index(8000, std::identity()) |
                 lade::map(fetch, {.concurrency = lade::automatic, .name = "fetch"}) |
                 lade::map(decode, {.name = "decode"}) | lade::batch(16);
  auto run = runtime.run(batches);
  for (auto& batch : run) train(batch);
  std::cout << to_code(run.settings()) << verdict(run.statistics()) << "\n";
}
