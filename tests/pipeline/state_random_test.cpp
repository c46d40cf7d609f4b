// Random pipelines of everything that has a state: what a run delivers that is left and gone on
// with, again and again, is what one delivers that is not.

#include <lade/autotune.hpp>
#include <lade/batch.hpp>
#include <lade/cut.hpp>
#include <lade/epochs.hpp>
#include <lade/failure.hpp>
#include <lade/from.hpp>
#include <lade/held.hpp>
#include <lade/io/file.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/pad.hpp>
#include <lade/per_worker.hpp>
#include <lade/run.hpp>
#include <lade/sample.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>
#include <lade/state.hpp>
#include <lade/tensor.hpp>
#include <lade/thread_pool.hpp>
#include <lade/through.hpp>
#include <lade/window.hpp>

#include "../support/groups.hpp"
#include "../support/pipelines.hpp"
#include "../support/resume.hpp"

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

namespace lade::state_random_test {

using namespace test;

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
  any_pipeline(random draw, const numbered_files& files, thread_pool& pool)
      : draw_(draw), shape_(draw_()), files_(files), pool_(pool) {}

  // Its runs may fail, and so may so many items of one of its stages. The last batch may be short,
  // so that the rest makes others: there are no windows, which leave out another end.
  void let_fail(std::uint64_t count) {
    may_end_short_ = true;
    budget_ = count;
  }

  // The same for runs that other ranks resume: nothing is split either, since the parts would be
  // those of another batch.
  void let_end_short() { may_end_short_ = is_shared_ = true; }

  pipeline<ints> operator()() {
    random shape(shape_);
    return stages_of(source(shape), shape);
  }

  // The stages of another source.
  pipeline<ints> operator()(const pipeline<ints>& in) {
    random shape(shape_);
    return stages_of(in, shape);
  }

  // Whether the rest comes in the order of an uninterrupted run, and so in the same groups.
  bool in_order() const { return in_order_; }

 private:
  unsigned any_concurrency() { return static_cast<unsigned>(1 + draw_.below(6)); }

  pipeline<ints> stages_of(pipeline<ints> made, random& shape) {
    in_order_ = single_ = true;
    for (auto stages = 1 + shape.below(6); stages > 0; --stages) made = with_stage(made, shape);
    if (is_shared_) may_part_ = false;
    return in_order_ && may_part_ && shape.below(2) ? made | batch(3) | unbatch() : made;
  }

  pipeline<ints> source(random& shape) {
    may_part_ = true;
    switch (shape.below(4)) {
      case 0: {
        auto listed = files_.listed();
        auto files = shape.below(2) ? listed | shuffle({.seed = shape()}) : listed;
        return files | map(io::read, {.concurrency = any_concurrency()}) | map(number_in);
      }
      case 1: {
        may_part_ = false;
        auto first = from_index(20 + shape.below(60), group_of);
        auto second =
            from_index(shape.below(60), [](std::uint64_t i) { return group_of(i + 500); });
        auto order = shape.below(2) ? merge_order::turns : merge_order::weighted;
        return merge(std::vector{first, second | map(same_later<ints>)},
                     test::merged_in(order, {1, 3}, shape()));
      }
      default: {
        auto list = from_index(shape.below(120), group_of);
        auto world = shape.below(2) ? 1 + shape.below(64) : 1;
        return list | shuffle({.seed = shape()}) | repeat(1 + shape.below(2)) |
               shard({.rank = shape.below(world), .world = world, .remainder = remainder::pad});
      }
    }
  }

  pipeline<ints> with_stage(const pipeline<ints>& in, random& shape) {
    if (single_ && shape.below(3) == 0) return with_drops(in, shape);
    map_options how{.concurrency = any_concurrency()};
    switch (shape.below(in_order_ ? 13 : 10)) {
      case 0: return in | map(same_later<ints>, how);
      case 1:
        in_order_ = may_part_ = false;
        how.order = item_order::completion;
        return in | map(same_later<ints>, how);
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
        auto step = size + shape.below(3);
        return may_end_short_ ? in : in | window(size, {.step = step}) | map(joined, how);
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
    switch (shape.below(may_end_short_ ? 2 : 3)) {
      case 0: return without_multiples<11>(in, how);
      case 1: how.error_budget = {.count = budget_}; return in | map(refuse_fives, how);
      default:
        how.deadline = std::chrono::milliseconds(250);
        return in | map(hang_on_multiples<97>, how);
    }
  }

  random draw_;
  std::uint64_t shape_;
  const numbered_files& files_;
  thread_pool& pool_;
  std::uint64_t budget_ = 500;
  bool may_end_short_ = false;
  bool is_shared_ = false;
  bool in_order_ = true;
  bool single_ = true;    // each group has one number
  bool may_part_ = true;  // a later stage may split the groups
};

class StateOfAnything : public testing::Test {
 protected:
  numbered_files files_{60};
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
    std::vector<ints> whole, parts;
    ASSERT_NO_THROW({
      whole = collect(first, make(), options);
      parts = with_restarts(draw, std::ref(make), 1 + draw.below(30), options);
    });
    if (make.in_order()) {
      ASSERT_EQ(parts, whole);
    } else {
      ASSERT_EQ(sorted(joined(parts)), sorted(joined(whole)));
    }
  }
}

TEST_F(StateOfAnything, AnEpochResumesAndOthersFollow) {
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

TEST_F(StateOfAnything, AFailedRunResumes) {
  auto seed = new_seed();
  for (std::uint64_t i = 0; i < 20; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pipeline " + std::to_string(i));
    random draw(seed, i);
    broken_once broken;
    auto refuse = [&broken](ints group) { return broken(std::move(group)); };
    auto make = [&] {
      auto made = from_index(100, group_of) | shuffle({.seed = seed});
      map_options how{.concurrency = static_cast<unsigned>(1 + draw.below(5))};
      return made | map(same_later<ints>, how) | map(refuse, how) | batch(3) | map(joined);
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

// All items that a pipeline delivers in runs that fail, until one does not. Counts the failed runs.
static std::vector<ints> with_failures(std::function<pipeline<ints>()> make, run_options next,
                                       int& failed) {
  std::vector<ints> all;
  while (true) {
    runtime where({.threads = 2});
    auto items = where.run(make(), next);
    try {
      while (auto item = items.wait_next()) all.push_back(std::move(*item));
      return all;
    } catch (const stage_error&) {
      ++failed;
    }
    next.state = state_from_json(to_json(items.state()));
  }
}

TEST_F(StateOfAnything, ARunThatFailsOrExceedsItsBudgetResumes) {
  auto seed = new_seed();
  runtime first({.threads = 3});
  int failed = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pipeline " + std::to_string(i));
    random draw(seed, i);
    run_options options{.epoch = draw.below(3), .seed = draw(), .require_state = true};
    any_pipeline make(draw, files_, pool_);
    make.let_fail(500);
    auto whole = joined(collect(first, make(), options));
    std::uint64_t attempts = 0;
    broken_once broken;
    auto refuse = [&broken](ints group) { return broken(std::move(group)); };
    map_options how{.concurrency = static_cast<unsigned>(1 + draw.below(5))};
    if (draw.below(2)) how.on_error = on_error::fail;
    auto again = [&] {
      make.let_fail(++attempts);  // without a good item among those, nothing is delivered
      return make() | map(refuse, how);
    };
    // A window that the failure cuts short has fewer items to choose from.
    ASSERT_EQ(sorted(joined(with_failures(again, options, failed))), sorted(whole));
  }
  EXPECT_GT(failed, 60);
}

// A random source, every time the part of another rank.
class shared_source {
 public:
  shared_source(std::uint64_t shape, const numbered_files& files) : shape_(shape), files_(files) {}

  pipeline<ints> part_of(const shard_options& rank) const {
    random shape(shape_);
    auto list = from_index(20 + shape.below(150), group_of);
    auto shuffled = list | shuffle({.seed = shape()});
    switch (shape.below(5)) {
      case 0: return files_.listed() | shard(rank) | map(io::read) | map(number_in);
      case 1: {
        auto more = from_index(shape.below(60), [](std::uint64_t i) { return group_of(i + 500); });
        return merge(
            std::vector{shuffled | shard(rank), more | shard(rank) | map(same_later<ints>)},
            {.order = merge_order::weighted, .weights = {3, 1}});
      }
      case 2: return list | repeat(2) | shard(rank);
      case 3: return list | skip(shape.below(10)) | take(shape.below(90)) | shard(rank);
      default: return shuffled | shard(rank);
    }
  }

 private:
  std::uint64_t shape_;
  const numbered_files& files_;
};

TEST_F(StateOfAnything, AnyNumberOfRanksResumesFromAnyOther) {
  auto seed = new_seed();
  runtime runtime({.threads = 2});
  for (std::uint64_t i = 0; i < 12; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pipeline " + std::to_string(i));
    random draw(seed, i);
    shared_source source(draw(), files_);
    any_pipeline stages(draw, files_, pool_);
    stages.let_end_short();
    std::vector<ints> all;
    run_options next{.epoch = draw.below(3), .seed = draw(), .require_state = true};
    auto whole = collect(runtime, stages(source.part_of({})), next);
    std::vector<std::uint64_t> worlds{1 + draw.below(64), 64, 1, 1 + draw.below(64)};
    for (auto world : worlds) {
      std::vector<state> ranks;
      auto steps = 1 + draw.below(3);
      for (std::uint64_t rank = 0; rank < world; ++rank) {
        auto options = next;
        auto part = stages(source.part_of({.rank = rank, .world = world}));
        take_part(runtime, part, steps + draw.below(2), options, all);
        ranks.push_back(*options.state);
      }
      next.state = merge(ranks);
    }
    for (auto& each : collect(runtime, stages(source.part_of({})), next)) all.push_back(each);
    ASSERT_EQ(sorted(joined(all)), sorted(joined(whole)));
  }
}

}  // namespace lade::state_random_test
