// A stage that is a coroutine: short texts are joined until they have enough letters. A run of it
// has a checkpoint, because the stage says which of its input each of its items is made of.

#include <lade/lade.hpp>

#include <cstddef>
#include <exception>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

static lade::async_generator<std::string> join(lade::async_generator<std::string> texts,
                                               std::size_t letters) {
  std::string joined;
  while (auto* text = co_await texts.next()) {
    joined += (joined.empty() ? "" : ", ") + *text;
    if (joined.size() < letters) continue;
    auto whole = std::exchange(joined, {});
    co_yield whole;
  }
  if (!joined.empty()) co_yield joined;
}

int main() {
  lade::runtime runtime;
  std::vector<std::string> texts{"to be", "or not to be", "that is", "the question", "whether"};
  auto source = lade::from(texts, {.identity = "hamlet"});
  auto joined = source | lade::through(join, {.lineage = lade::lineage_rule::consumed}, 12u);

  auto first = runtime.run(joined);
  std::cout << "before: " << first.wait_next().value() << "\n";
  auto checkpoint = to_json(first.state());

  auto state = lade::state_from_json(checkpoint);
  for (auto& text : runtime.run(joined, {.state = state})) std::cout << "after: " << text << "\n";

  auto without_rule = source | lade::through(join, {.name = "join"}, 12u);
  try {
    auto run = runtime.run(without_rule, {.require_state = true});
    run.wait_next();
  } catch (const std::exception& failure) {
    std::cout << failure.what() << "\n";
  }
}
