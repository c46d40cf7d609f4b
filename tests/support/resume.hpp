// Interrupts and resumes runs, for tests of states.

#pragma once

#include <lade/pipeline.hpp>
#include <lade/random.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/state.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace lade::test {

// The first `count` items of a run, or all if there are fewer.
template <class T>
std::vector<T> take_some(run<T>& items, std::size_t count) {
  std::vector<T> taken;
  while (taken.size() < count) {
    auto item = items.wait_next();
    if (!item) break;
    taken.push_back(std::move(*item));
  }
  return taken;
}

// Runs a pipeline with the options `next`, and adds its first `count` items to `all`. Then sets
// next.state, converted to text and back, so that the next run resumes behind them. Returns whether
// there were `count` items.
template <class T>
bool take_part(runtime& where, const pipeline<T>& what, std::size_t count, run_options& next,
               std::vector<T>& all) {
  auto items = where.run(what, next);
  auto some = take_some(items, count);
  all.insert(all.end(), some.begin(), some.end());
  next.state = state_from_json(to_json(items.state()));
  return some.size() == count;
}

// Returns the items of a run that is ended after every `count` items, and resumed with a new
// pipeline from make().
template <class Make>
auto with_interruptions(runtime& where, Make make, std::size_t count, run_options options = {}) {
  std::vector<typename decltype(make())::value_type> all;
  while (take_part(where, make(), count, options, all)) {}
  return all;
}

// The same, but each run has a new runtime, with another number of threads than the last.
template <class Make>
auto with_restarts(random& draw, Make make, std::size_t count, run_options options = {}) {
  std::vector<typename decltype(make())::value_type> all;
  auto threads = 1 + draw.below(4);
  for (bool more = true; more; threads = 1 + (threads + draw.below(3)) % 4) {
    runtime where({.threads = static_cast<unsigned>(threads)});
    more = take_part(where, make(), count, options, all);
  }
  return all;
}

}  // namespace lade::test
