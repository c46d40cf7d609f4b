// What tests of states share.

#pragma once

#include <lade/pipeline.hpp>
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

// What is delivered when a run is left after `count` items, several times over, each time by
// another pipeline that make() gives, and its state goes through text.
template <class Make>
auto with_interruptions(runtime& where, Make make, std::size_t count,
                        const run_options& options = {}) {
  std::vector<typename decltype(make())::value_type> all;
  auto next = options;
  while (true) {
    auto items = where.run(make(), next);
    auto some = take_some(items, count);
    all.insert(all.end(), some.begin(), some.end());
    if (some.size() < count) return all;
    next.state = state_from_json(to_json(items.state()));
  }
}

}  // namespace lade::test
