// A run that is watched while it lives, and recorded for a closer look.

#include <lade/lade.hpp>

#include "work.hpp"

#include <chrono>
#include <functional>

int main() {
  lade::runtime runtime;
  auto batches = lade::from_index(800, std::identity()) |
                 lade::map(fetch, {.concurrency = 4, .name = "fetch"}) |
                 lade::map(decode, {.name = "decode"}) | lade::batch(16);
  lade::trace trace("bottleneck.trace.json");
  lade::run_options options{
      .report = {.every = std::chrono::milliseconds(500), .to = lade::dashboard()},
      .trace = &trace};
  auto run = runtime.run(batches, options);
  for (auto& batch : run) {
    auto step = trace.span("train");
    train(batch);
  }
}
