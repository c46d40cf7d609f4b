// How fast each stage of a pipeline is by itself, at several concurrencies.

#include <lade/lade.hpp>

#include "work.hpp"

#include <functional>
#include <iostream>

int main() {
  lade::runtime runtime;
  auto batches = lade::from_index(800, std::identity()) |
                 lade::map(fetch, {.concurrency = 4, .name = "fetch"}) |
                 lade::map(decode, {.name = "decode"}) | lade::batch(16);
  std::cout << lade::table(lade::profile(runtime, batches, {.items = 128}));
}
