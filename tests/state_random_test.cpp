// Random pipelines of everything that has a state: what a run delivers that is left and gone on
// with, again and again, is what one delivers that is not.

#include <lade/autotune.hpp>
#include <lade/batch.hpp>
#include <lade/chain.hpp>
#include <lade/cut.hpp>
#include <lade/epochs.hpp>
#include <lade/failure.hpp>
#include <lade/from.hpp>
#include <lade/held.hpp>
#include <lade/io/directory.hpp>
#include <lade/io/file.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/pad.hpp>
#include <lade/per_worker.hpp>
#include <lade/run.hpp>
#include <lade/sample.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>
#include <lade/sleep.hpp>
#include <lade/state.hpp>
#include <lade/task.hpp>
#include <lade/tensor.hpp>
#include <lade/thread_pool.hpp>
#include <lade/through.hpp>
#include <lade/window.hpp>

#include "support/pipelines.hpp"
#include "support/resume.hpp"
#include "support/temp_dir.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
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

static ints group_of(std::uint64_t i) { return {static_cast<int>(i) + 1}; }
static ints same(ints group) { return group; }

static task<ints> same_later(ints group, random draw) {
  co_await sleep(std::chrono::microseconds(draw.below(300)));
  co_return group;
}

template <int Divisor>
static task<ints> hang_on_multiples(ints group) {
  if (group.front() % Divisor == 0) co_await sleep(std::chrono::hours(10));
  co_return group;
}

static ints refuse_fives(ints group) {
  if (group.front() % 5 == 0) throw std::runtime_error("five");
  return group;
}

static ints number_in(const sample& file) { return {std::stoi(std::string(file.data().text()))}; }
static sample as_sample(const ints& group) { return sample(std::to_string(group.front())); }

class number_writer {
 public:
  tensor_spec spec() const { return {element_type::i32, {1}}; }
  void operator()(const sample& in, const tensor& slot) const {
    slot.data<std::int32_t>()[0] = std::stoi(in.key());
  }
};

// The numbers of a tensor, without what fills it up.
static ints elements_of(const tensor& numbers) {
  auto* first = numbers.data<std::int32_t>();
  ints all(first, first + numbers.spec().bytes() / sizeof(std::int32_t));
  std::erase(all, -1);
  return all;
}
static ints elements_of_samples(const sample_batch& batch) { return elements_of(batch.tensor()); }
static ints elements_of_rows(const padded_batch& batch) { return elements_of(batch.data()); }
static ints elements_of_row(const packed_batch& batch) { return elements_of(batch.data()); }

static async_generator<ints> hold_one(async_generator<ints> in) {
  std::optional<held<ints>> before;
  while (auto next = co_await in.next().held()) {
    if (before) co_yield std::move(*before);
    before.emplace(std::move(*next));
  }
  if (before) co_yield std::move(*before);
}

// A random pipeline of groups of numbers, every time with other threads in it.
class any_pipeline {
 public:
  any_pipeline(random draw, const testing_support::temp_dir& files, thread_pool& pool)
      : draw_(draw), shape_(draw_()), files_(files.path().string()), pool_(pool) {}

  pipeline<ints> operator()() {
    random shape(shape_);
    in_order_ = single_ = may_part_ = true;
    auto made = source(shape);
    for (auto stages = 1 + shape.below(6); stages > 0; --stages) made = with_stage(made, shape);
    return in_order_ && may_part_ && shape.below(2) ? made | batch(3) | unbatch() : made;
  }

  // Whether the rest comes in the order of an uninterrupted run, and so in the same groups.
  bool in_order() const { return in_order_; }

 private:
  unsigned any_concurrency() { return static_cast<unsigned>(1 + draw_.below(6)); }

  pipeline<ints> source(random& shape) {
    switch (shape.below(4)) {
      case 0: {
        auto listed = from(io::files(files_));
        auto files = shape.below(2) ? listed | shuffle({.seed = shape()}) : listed;
        return files | map(io::read, {.concurrency = any_concurrency()}) | map(number_in);
      }
      case 1: {
        may_part_ = false;
        auto first = from_index(20 + shape.below(60), group_of);
        auto second =
            from_index(shape.below(60), [](std::uint64_t i) { return group_of(i + 500); });
        auto order = shape.below(2) ? merge_order::turns : merge_order::weighted;
        return merge(std::vector{first, second | map(same_later)},
                     {.order = order, .weights = {1, 3}, .seed = shape()});
      }
      default: {
        auto list = from_index(shape.below(120), group_of);
        auto world = 1 + shape.below(3) * shape.below(3);
        return list | shuffle({.seed = shape()}) | repeat(1 + shape.below(2)) |
               shard({.rank = world - 1, .world = world, .remainder = remainder::pad});
      }
    }
  }

  pipeline<ints> with_stage(const pipeline<ints>& in, random& shape) {
    if (single_ && shape.below(3) == 0) return with_drops(in, shape);
    map_options how{.concurrency = any_concurrency()};
    switch (shape.below(in_order_ ? 13 : 10)) {
      case 0: return in | map(same_later, how);
      case 1:
        in_order_ = may_part_ = false;
        how.order = item_order::completion;
        return in | map(same_later, how);
      case 2: return in | map(per_worker([] { return same; }), how);
      case 3: how.pool = &pool_; return in | map(same, how);
      case 4: return in | map(same, {.concurrency = automatic});
      case 5: single_ = false; return in | batch(1 + shape.below(5)) | map(joined, how);
      case 6:
        may_part_ = false;
        return in | map(same) | shuffle({.seed = shape(), .window = 1 + shape.below(20)});
      case 7: may_part_ = false; return in | through(hold_one, {.lineage = lineage_rule::carried});
      case 8:
        single_ = false;
        return in | batch(1 + shape.below(5)) |
               pad({.value = -1, .concurrency = any_concurrency()}) | map(elements_of_rows);
      case 9:
        single_ = false;
        return in | batch(1 + shape.below(5)) | pack({.concurrency = any_concurrency()}) |
               map(elements_of_row);
      case 10:
        single_ = in_order_ = may_part_ = false;
        return in | pack_rows({.length = 400, .value = -1}) | map(elements_of_row);
      case 11: {
        single_ = false;
        auto size = 1 + shape.below(4);
        return in | window(size, {.step = size + shape.below(3)}) | map(joined, how);
      }
      default:
        if (!single_) return in;
        single_ = false;
        return in | map(as_sample) |
               batch_into(number_writer(),
                          {.size = 1 + shape.below(5), .concurrency = any_concurrency()}) |
               map(elements_of_samples);
    }
  }

  // What becomes of a number depends on it alone.
  pipeline<ints> with_drops(const pipeline<ints>& in, random& shape) {
    map_options how{.concurrency = any_concurrency(), .on_error = on_error::skip};
    switch (shape.below(3)) {
      case 0:  // whatever else the machine does, one of many calls comes back in time
        how.timeout = std::chrono::milliseconds(1);
        how.retry = {.attempts = 20, .pause = {}};
        return in | map(hang_on_multiples<11>, how);
      case 1:
        how.deadline = std::chrono::milliseconds(250);
        return in | map(hang_on_multiples<49>, how);
      default: how.error_budget = {.count = 500}; return in | map(refuse_fives, how);
    }
  }

  random draw_;
  std::uint64_t shape_;
  std::string files_;
  thread_pool& pool_;
  bool in_order_ = true;
  bool single_ = true;    // each group has one number
  bool may_part_ = true;  // what is behind may be taken apart
};

class StateOfAnything : public testing::Test {
 protected:
  StateOfAnything() {
    for (int i = 0; i < 60; ++i)
      files_.write(std::to_string(i % 3) + "/" + std::to_string(i), std::to_string(i + 1));
  }

  testing_support::temp_dir files_;
  thread_pool pool_{{.threads = 2}};
};

TEST_F(StateOfAnything, ARunThatIsInterruptedDeliversWhatAnUninterruptedOneDoes) {
  auto seed = new_seed();
  runtime first({.threads = 3});
  for (std::uint64_t i = 0; i < 150; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pipeline " + std::to_string(i));
    random draw(seed, i);
    any_pipeline make(draw, files_, pool_);
    run_options options{.epoch = draw.below(3), .seed = draw(), .require_state = true};
    auto whole = collect(first, make(), options);
    auto parts = with_restarts(draw, std::ref(make), 1 + draw.below(30), options);
    if (make.in_order()) {
      ASSERT_EQ(parts, whole);
    } else {
      ASSERT_EQ(sorted(joined(parts)), sorted(joined(whole)));
    }
  }
}

TEST_F(StateOfAnything, AnEpochIsGoneOnWithAndOthersFollow) {
  auto seed = new_seed();
  for (std::uint64_t i = 0; i < 20; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pipeline " + std::to_string(i));
    random draw(seed, i);
    any_pipeline make(draw, files_, pool_);
    runtime where({.threads = 2});
    std::vector<ints> whole;
    for (auto& epoch : epochs(where, make(), 3, {.epoch = 4}))
      for (auto& each : collect(epoch)) whole.push_back(std::move(each));
    std::vector<ints> parts;
    state saved;
    for (auto& epoch : epochs(where, make(), 3, {.epoch = 4})) {
      for (auto& each : take_some(epoch, 1 + draw.below(20))) parts.push_back(std::move(each));
      saved = state_from_json(to_json(epoch.state()));
      break;
    }
    for (auto& epoch : epochs(where, make(), 3, {.state = saved}))
      for (auto& each : collect(epoch)) parts.push_back(std::move(each));
    if (make.in_order()) {
      ASSERT_EQ(parts, whole);
    } else {
      ASSERT_EQ(sorted(joined(parts)), sorted(joined(whole)));
    }
  }
}

// Fails once for every ninth number.
class broken_once {
 public:
  ints operator()(ints group) {
    std::lock_guard lock(mutex_);
    if (group.front() % 9 == 0 && failed_.insert(group.front()).second)
      throw std::runtime_error("broken");
    return group;
  }

 private:
  std::mutex mutex_;
  std::set<int> failed_;
};

TEST_F(StateOfAnything, ARunThatHasFailedIsGoneOnWith) {
  auto seed = new_seed();
  for (std::uint64_t i = 0; i < 20; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pipeline " + std::to_string(i));
    random draw(seed, i);
    broken_once broken;
    auto refuse = [&broken](ints group) { return broken(std::move(group)); };
    auto make = [&] {
      auto made = from_index(100, group_of) | shuffle({.seed = seed});
      map_options how{.concurrency = static_cast<unsigned>(1 + draw.below(5))};
      return made | map(same_later, how) | map(refuse, how) | batch(3) | map(joined);
    };
    std::vector<ints> all;
    run_options next;
    for (bool over = false; !over;) {
      runtime where({.threads = 2});
      auto items = where.run(make(), next);
      try {
        while (auto item = items.wait_next()) all.push_back(std::move(*item));
        over = true;
      } catch (const stage_error&) {}
      next.state = items.state();
    }
    auto expected = up_to(101);
    expected.erase(expected.begin());
    ASSERT_EQ(sorted(joined(all)), expected);
  }
}

TEST(StateOfWorlds, AnyNumberOfRanksGoesOnFromAnyOther) {
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  random draw(seed);
  runtime runtime({.threads = 2});
  auto list = from_index(1000, group_of) | shuffle({.seed = 3});
  auto stages = chain(map(same_later), batch(2), map(joined), shuffle({.window = 3}));
  std::vector<std::uint64_t> worlds{64, 1, 1 + draw.below(64), 1 + draw.below(64)};
  std::vector<ints> all;
  std::optional<state> merged;
  for (auto world : worlds) {
    std::vector<state> ranks;
    auto steps = 1 + draw.below(3);
    for (std::uint64_t rank = 0; rank < world; ++rank) {
      auto part = list | shard({.rank = rank, .world = world}) | stages;
      auto items = runtime.run(part, {.state = merged, .require_state = true});
      for (auto& each : take_some(items, steps + draw.below(2))) all.push_back(std::move(each));
      ranks.push_back(state_from_json(to_json(items.state())));
    }
    merged = merge(ranks);
  }
  for (auto& each : collect(runtime, list | stages, {.state = merged}))
    all.push_back(std::move(each));
  auto expected = up_to(1001);
  expected.erase(expected.begin());
  EXPECT_EQ(sorted(joined(all)), expected);
}

}  // namespace lade
