#include <lade/batch.hpp>
#include <lade/bucket.hpp>
#include <lade/chain.hpp>
#include <lade/cut.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/route.hpp>
#include <lade/run.hpp>
#include <lade/shuffle.hpp>
#include <lade/state.hpp>
#include <lade/tee.hpp>

#include "support/pipelines.hpp"
#include "support/resume.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace lade {

using namespace test;
using ints = std::vector<int>;

static ints joined(const std::vector<ints>& parts) {
  ints all;
  for (auto& each : parts) all.insert(all.end(), each.begin(), each.end());
  return all;
}

// A random pipeline of groups of numbers, with paths and buckets in it, every time with other
// threads. Groups may be others when a run has been interrupted, the numbers in them may not.
class paths_pipeline {
 public:
  explicit paths_pipeline(random& draw) : draw_(draw), shape_(draw()), size_(draw.below(150)) {}

  pipeline<ints> operator()() {
    random shape(shape_);
    in_order_ = single_ = true;
    auto list = from_index(size_, [](std::uint64_t i) { return ints{static_cast<int>(i)}; });
    pipeline<ints> made = shape.below(2) ? list | shuffle({.seed = 9}) : list;
    for (auto stages = 1 + shape.below(5); stages > 0; --stages) made = with_stage(made, shape);
    return in_order_ && shape.below(3) == 0 ? apart(made) : made;
  }

  bool in_order() const { return in_order_; }

 private:
  unsigned any_concurrency() { return static_cast<unsigned>(1 + draw_.below(6)); }
  static ints same_group(ints group) { return group; }
  map_stage<ints (*)(ints)> same() { return map(same_group, {.concurrency = any_concurrency()}); }
  auto together() -> map_stage<ints (*)(const std::vector<ints>&)> {
    return map(joined, {.concurrency = any_concurrency()});
  }

  // Each group once, twice or three times.
  pipeline<ints> apart(const pipeline<ints>& in) {
    auto copies = [](const ints& group) { return std::vector<ints>(group.size() % 3 + 1, group); };
    return in | flat_map(copies, {.concurrency = any_concurrency()});
  }

  static std::size_t parity(const ints& group) {
    return group.empty() ? 0 : static_cast<std::size_t>(group.front()) % 2;
  }

  pipeline<ints> with_stage(const pipeline<ints>& in, random& shape) {
    if (single_ && shape.below(3) == 0) return with_drops(in, shape);
    switch (shape.below(7)) {
      case 0: return in | same();
      case 1: in_order_ = false; return in | route(parity, same(), chain(prefetch(2), same()));
      case 2:
        return in | tee(same(), prefetch(1 + draw_.below(3))) |
               map([](std::tuple<ints, ints> both) { return std::get<0>(std::move(both)); });
      case 3:
        single_ = false;
        return in | batch(1 + shape.below(5)) | route_batches(parity, chain(), chain()) |
               together();
      case 4:
        single_ = in_order_ = false;
        return in | bucket(&ints::size, {.boundaries = {1, 2}, .size = 1 + shape.below(4)}) |
               together();
      case 5: single_ = false; return in | batch(1 + shape.below(5)) | together();
      default: in_order_ = false; return in | same() | shuffle({.window = 1 + shape.below(9)});
    }
  }

  // What becomes of a number depends on it alone.
  pipeline<ints> with_drops(const pipeline<ints>& in, random& shape) {
    auto broken = static_cast<int>(2 + shape.below(9));
    auto refuse = [broken](const ints& group) {
      if (group.front() % broken == 0) throw std::runtime_error("broken");
      return group;
    };
    switch (shape.below(3)) {
      case 0:
        return in | filter([broken](const ints& group) { return group.front() % broken != 0; },
                           {.concurrency = any_concurrency()});
      case 1:
        return in | map(refuse, {.concurrency = any_concurrency(),
                                 .retry = {.attempts = 2, .pause = {}},
                                 .on_error = on_error::skip});
      default: return in | map(refuse, {.concurrency = any_concurrency(), .substitute = ints{-1}});
    }
  }

  random& draw_;
  std::uint64_t shape_;
  std::uint64_t size_;
  bool in_order_ = true;
  bool single_ = true;  // each group has one number
};

TEST(StateOfPaths, ARunThatIsInterruptedDeliversWhatAnUninterruptedOneDoes) {
  auto seed = new_seed();
  runtime first({.threads = 3});
  for (std::uint64_t i = 0; i < 150; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pipeline " + std::to_string(i));
    random draw(seed, i);
    paths_pipeline make(draw);
    auto whole = joined(collect(first, make()));
    auto parts = joined(with_restarts(draw, std::ref(make), 1 + draw.below(40)));
    if (!make.in_order()) {
      std::ranges::sort(parts);
      std::ranges::sort(whole);
    }
    ASSERT_EQ(parts, whole);
  }
}

}  // namespace lade
