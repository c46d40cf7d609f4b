// Random pipelines with paths, buckets and parts, of functions that return in any order: what a run
// delivers that is left and gone on with, again and again, is what one delivers that is not.

#include <lade/async_generator.hpp>
#include <lade/batch.hpp>
#include <lade/bucket.hpp>
#include <lade/chain.hpp>
#include <lade/cut.hpp>
#include <lade/draw.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/route.hpp>
#include <lade/route_batches.hpp>
#include <lade/run.hpp>
#include <lade/shuffle.hpp>
#include <lade/sleep.hpp>
#include <lade/state.hpp>
#include <lade/tee.hpp>

#include "../support/groups.hpp"
#include "../support/pipelines.hpp"
#include "../support/resume.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace lade::state_paths_test {

using namespace test;

static std::size_t parity(const ints& group) {
  return group.empty() ? 0 : static_cast<std::size_t>(group.front()) % 2;
}

static std::vector<ints> without_sevens(std::vector<ints> batch) {
  std::erase_if(batch, [](const ints& group) { return !group.empty() && group.front() % 7 == 0; });
  return batch;
}

static std::vector<ints> same_batch(std::vector<ints> batch) { return batch; }

// Each group once, twice or three times.
static std::vector<ints> copies(const ints& group) {
  return std::vector<ints>(group.size() % 3 + 1, group);
}

static async_generator<ints> copies_later(ints group) {
  for (auto left = group.size() % 3 + 1; left > 0; --left) {
    co_await sleep(std::chrono::microseconds(100));
    ints copy = group;
    co_yield copy;
  }
}

static ints joined_row(std::tuple<ints, ints> row) {
  auto& [first, second] = row;
  first.insert(first.end(), second.begin(), second.end());
  return std::move(first);
}

static ints either_of_equals(std::tuple<ints, ints> both) {
  auto& [first, second] = both;
  return first == second ? std::move(first) : ints{-1};
}

// A random pipeline of groups of numbers, every time with other threads.
class paths_pipeline {
 public:
  paths_pipeline(random draw, const numbered_files& files)
      : draw_(draw), shape_(draw_()), files_(files) {}

  pipeline<ints> operator()() {
    random shape(shape_);
    in_order_ = single_ = true;
    auto made = source(shape);
    for (auto stages = 1 + shape.below(5); stages > 0; --stages)
      made = shape.below(6) ? with_stage(made, shape, 2) : beside_others(made);
    return in_order_ && shape.below(2) ? apart(made, shape) : made;
  }

  // Whether the rest comes in the order of an uninterrupted run, and so in the same groups.
  bool in_order() const { return in_order_; }

 private:
  map_options any_width() { return {.concurrency = static_cast<unsigned>(1 + draw_.below(6))}; }
  std::size_t any_buffer() { return 1 + draw_.below(5); }

  pipeline<ints> source(random& shape) {
    auto list = from_index(shape.below(100), group_of);
    switch (shape.below(4)) {
      case 0: return list;
      case 1: return files_.listed() | map(io::read, any_width()) | map(number_in);
      case 2:
        return from_index(50, group_of) |
               draw({.weights = std::vector(50, 1.0), .count = shape.below(100), .seed = shape()});
      default: return list | shuffle({.seed = shape()});
    }
  }

  // `depth`: how deep paths may be inside of each other.
  pipeline<ints> with_stage(const pipeline<ints>& in, random& shape, int depth) {
    if (single_ && shape.below(4) == 0) return with_drops(in, shape);
    switch (shape.below(depth > 0 ? 10 : 6)) {
      case 0: return in_completion_order(in);
      case 1: single_ = false; return in | batch(1 + shape.below(5)) | map(joined, any_width());
      case 2:
        single_ = in_order_ = false;
        return in | bucket(&ints::size, {.boundaries = {1, 2}, .size = 1 + shape.below(4)}) |
               map(joined, any_width());
      case 3:
        in_order_ = false;
        return with_delays(in, shape) | shuffle({.window = 1 + shape.below(9)});
      case 4: return with_delays(in, shape);
      case 5: return single_ ? with_substitutes(in) : in;
      case 6: return with_batch_paths(in, shape);
      case 7: return with_tee(in, shape, depth);
      default: {
        in_order_ = false;
        auto first = path(shape, depth - 1), second = path(shape, depth - 1);
        return in | route(parity, {.buffer = any_buffer()}, first, second);
      }
    }
  }

  pipeline<ints> in_completion_order(const pipeline<ints>& in) {
    in_order_ = false;
    auto how = any_width();
    how.order = item_order::completion;
    return in | map(same_later<ints>, how);
  }

  pipeline<ints> with_substitutes(const pipeline<ints>& in) {
    auto odd_only = [](const ints& group) {
      if (group.front() % 2 == 0) throw std::runtime_error("even");
      return group;
    };
    return in | map(odd_only, {.concurrency = any_width().concurrency, .substitute = ints{1}});
  }

  // The same groups in the same order.
  pipeline<ints> with_delays(const pipeline<ints>& in, random& shape) {
    switch (shape.below(single_ ? 4 : 3)) {
      case 0: return in | map(same, any_width());
      case 1: return in | prefetch(1 + draw_.below(3));
      case 2: return in | map(same_later<ints>, any_width());
      default: return files_.read_again(in, any_width());
    }
  }

  // What becomes of a number depends on it alone.
  pipeline<ints> with_drops(const pipeline<ints>& in, random& shape) {
    auto divisor = static_cast<int>(2 + shape.below(9));
    auto refuse = [divisor](const ints& group) {
      if (group.front() % divisor == 0) throw std::runtime_error("broken");
      return group;
    };
    auto how = any_width();
    switch (shape.below(3)) {
      case 0:
        return in | filter([divisor](const ints& group) { return group.front() % divisor != 0; },
                           {.concurrency = how.concurrency});
      case 1:
        how.retry = {.attempts = 2, .pause = {}};
        how.on_error = on_error::skip;
        return in | map(refuse, how);
      default: return without_multiples<41>(in, how);
    }
  }

  // A path of stages that are the same in every pipeline of this shape.
  any_stage<ints> path(random& shape, int depth) {
    return {[this, seed = shape(), depth](const pipeline<ints>& in) {
      random inside(seed);
      auto made = in;
      for (auto stages = inside.below(3); stages > 0; --stages)
        made = with_stage(made, inside, depth);
      return made;
    }};
  }

  // Both paths drop the same, one before and one behind its other stage.
  pipeline<ints> with_tee(const pipeline<ints>& in, random& shape, int depth) {
    bool drops = single_ && shape.below(2);
    auto path = [=, this, inside = shape()](bool drops_first) {
      return any_stage<ints>{[=, this](const pipeline<ints>& items) {
        random dropping(inside, 0), keeping(inside, 1);
        auto made = drops && drops_first ? with_drops(items, dropping) : items;
        made = depth > 1 ? with_tee(made, keeping, depth - 1) : with_delays(made, keeping);
        return drops && !drops_first ? with_drops(made, dropping) : made;
      }};
    };
    return in | tee({.buffer = any_buffer()}, path(true), path(false)) | map(either_of_equals);
  }

  pipeline<ints> with_batch_paths(const pipeline<ints>& in, random& shape) {
    auto second = map(single_ ? without_sevens : same_batch, any_width());
    single_ = false;
    return in | batch(1 + shape.below(5)) |
           route_batches(parity, {.buffer = any_buffer()},
                         map(same_later<std::vector<ints>>, any_width()), second) |
           map(joined, any_width());
  }

  // How many of the others are delivered depends on the number of groups.
  pipeline<ints> beside_others(const pipeline<ints>& in) {
    if (!single_ && !in_order_) return in;
    single_ = false;
    auto others = from_index(1000, [](std::uint64_t i) { return group_of(i + 2000); });
    return zip(in, others | map(same_later<ints>, any_width())) | map(joined_row);
  }

  // Several groups of one, and perhaps several of each of those.
  pipeline<ints> apart(const pipeline<ints>& in, random& shape) {
    auto made = shape.below(3) ? with_copies(in, shape) : unbatched(in, shape);
    made = with_stage_of_parts(made, shape);
    return shape.below(2) ? made : with_stage_of_parts(with_copies(made, shape), shape);
  }

  pipeline<ints> unbatched(const pipeline<ints>& in, random& shape) {
    auto batches = in | batch(1 + shape.below(4));
    auto apart_later = chain(map(same_later<std::vector<ints>>, any_width()), unbatch());
    if (shape.below(2)) return batches | apart_later;
    return batches | tee({.buffer = any_buffer()}, apart_later, unbatch()) | map(either_of_equals);
  }

  pipeline<ints> with_copies(const pipeline<ints>& in, random& shape) {
    flat_map_options how{.concurrency = any_width().concurrency};
    return shape.below(2) ? in | flat_map(copies, how) : in | flat_map(copies_later, how);
  }

  pipeline<ints> with_stage_of_parts(const pipeline<ints>& in, random& shape) {
    if (single_ && shape.below(3) == 0) return with_drops(in, shape);
    return shape.below(2) ? with_delays(in, shape) : with_tee(in, shape, 1);
  }

  random draw_;
  std::uint64_t shape_;
  const numbered_files& files_;
  bool in_order_ = true;
  bool single_ = true;  // each group has one number
};

TEST(StateOfPaths, ARunThatIsInterruptedDeliversWhatAnUninterruptedOneDoes) {
  auto seed = new_seed();
  numbered_files files(100);
  runtime first({.threads = 3});
  for (std::uint64_t i = 0; i < 100; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pipeline " + std::to_string(i));
    random draw(seed, i);
    paths_pipeline make(draw, files);
    run_options options{.epoch = draw.below(3), .seed = draw(), .require_state = true};
    std::vector<ints> whole, parts;
    ASSERT_NO_THROW({
      whole = collect(first, make(), options);
      parts = with_restarts(draw, std::ref(make), 1 + draw.below(40), options);
    });
    if (make.in_order()) {
      ASSERT_EQ(parts, whole);
    } else {
      ASSERT_EQ(sorted(joined(parts)), sorted(joined(whole)));
    }
  }
}

}  // namespace lade::state_paths_test
