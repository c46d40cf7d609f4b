// A custom stage: a coroutine over the items of the stage before it.

#include <lade/lade.hpp>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

static std::vector<std::string> sentences() {
  return {"to be", "or not to be", "that is the question"};
}

// Joins neighbours into texts of at least `letters` letters. Each text is made of all sentences
// that were taken since the text before, so the stage follows lineage_rule::consumed: runs have a
// state.
static lade::async_generator<std::string> join(lade::async_generator<std::string> in,
                                               std::size_t letters) {
  std::string text;
  while (auto* sentence = co_await in.next()) {
    text += (text.empty() ? "" : ", ") + *sentence;
    if (text.size() < letters) continue;
    auto whole = std::exchange(text, {});
    co_yield whole;
  }
  if (!text.empty()) co_yield text;
}

int main() {
  lade::runtime runtime;
  auto texts =
      lade::from(sentences()) | lade::through(join, {.lineage = lade::lineage_rule::consumed}, 12u);
  for (auto& text : runtime.run(texts)) std::printf("%s\n", text.c_str());
}
