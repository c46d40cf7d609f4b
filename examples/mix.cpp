// One stream of several sources, three of one for each one of the other: the same mix in every run
// of an epoch, another in the next.

#include <lade/lade.hpp>

#include <cstdio>
#include <string>
#include <vector>

static std::string question(std::uint64_t i) { return "question " + std::to_string(i); }
static std::string story(std::uint64_t i) { return "story " + std::to_string(i); }

int main() {
  lade::runtime runtime;
  std::vector<lade::pipeline<std::string>> sources{
      lade::from_index(30, question) | lade::shuffle({.seed = 1}),
      lade::from_index(10, story) | lade::shuffle({.seed = 2}),
  };
  auto mixed = lade::merge(sources, {.order = lade::merge_order::weighted, .weights = {3, 1}});
  for (unsigned epoch = 0; epoch < 2; ++epoch) {
    std::printf("epoch %u\n", epoch);
    for (auto& text : runtime.run(mixed, {.epoch = epoch})) std::printf("  %s\n", text.c_str());
  }
}
