// Custom stages: which rule they follow, and what a run delivers that goes on behind them.

#include <lade/batch.hpp>
#include <lade/chain.hpp>
#include <lade/error.hpp>
#include <lade/failure.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/held.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/route.hpp>
#include <lade/run.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>
#include <lade/sleep.hpp>
#include <lade/state.hpp>
#include <lade/through.hpp>

#include "support/pipelines.hpp"
#include "support/resume.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lade {

using namespace test;
using testing::HasSubstr;
using testing::ThrowsMessage;
using ints = std::vector<int>;

constexpr through_options consumed{.name = "custom", .lineage = lineage_rule::consumed};
constexpr through_options carried{.name = "custom", .lineage = lineage_rule::carried};

static async_generator<int> at_least(async_generator<int> in, int least) {
  while (auto* item = co_await in.next())
    if (*item >= least) co_yield *item;
}

static async_generator<int> pass_on(async_generator<int> in) { return at_least(std::move(in), 0); }

// A number that tells both, in any order of joins.
static int joined(int a, int b) {
  return static_cast<int>((static_cast<unsigned>(a) + 1000u * static_cast<unsigned>(b)) &
                          0x7fff'ffffu);
}

// Two and two as one, and one alone at the end.
static async_generator<int> join_pairs(async_generator<int> in) {
  while (auto* item = co_await in.next()) {
    int sum = *item;
    if (auto* second = co_await in.next()) sum = joined(sum, *second);
    co_yield sum;
  }
}

static async_generator<int> hold_one(async_generator<int> in) {
  std::optional<held<int>> before;
  while (auto item = co_await in.next().held()) {
    if (before) co_yield std::move(*before);
    before.emplace(std::move(*item));
  }
  if (before) co_yield std::move(*before);
}

static async_generator<int> swap_pairs(async_generator<int> in) {
  while (auto first = co_await in.next().held()) {
    auto second = co_await in.next().held();
    if (second) co_yield std::move(*second);
    co_yield std::move(*first);
  }
}

static async_generator<int> shuffle_by_hand(async_generator<int> in, std::size_t window) {
  random draw(7);
  std::vector<held<int>> items;
  auto pick = [&] {
    std::swap(items[draw.below(items.size())], items.back());
    auto picked = std::move(items.back());
    items.pop_back();
    return picked;
  };
  while (auto item = co_await in.next().held()) {
    items.push_back(std::move(*item));
    if (items.size() < window) continue;
    co_yield pick();
  }
  while (!items.empty()) co_yield pick();
}

static async_generator<int> sort_all(async_generator<int> in) {
  std::vector<held<int>> items;
  while (auto item = co_await in.next().held()) items.push_back(std::move(*item));
  std::ranges::sort(items, {}, [](auto& item) { return *item; });
  for (auto& item : items) co_yield std::move(item);
}

// Neighbours that are alike are one item.
static async_generator<int> one_of_neighbours(async_generator<int> in) {
  std::optional<held<int>> before;
  while (auto item = co_await in.next().held()) {
    if (before && **before / 3 == **item / 3) {
      before->join(*item);
      continue;
    }
    if (before) co_yield std::move(*before);
    before.emplace(std::move(*item));
  }
  if (before) co_yield std::move(*before);
}

static async_generator<int> drop_fives(async_generator<int> in) {
  while (auto item = co_await in.next().held()) {
    if (**item % 5 == 0)
      co_await item->drop();
    else
      co_yield std::move(*item);
  }
}

static async_generator<ints> batch_by_hand(async_generator<int> in, std::size_t size) {
  std::vector<held<int>> items;
  while (auto item = co_await in.next().held()) {
    items.push_back(std::move(*item));
    if (items.size() == size) co_yield collate(std::exchange(items, {}));
  }
  if (!items.empty()) co_yield collate(std::move(items));
}

static int first_of(const ints& batch) { return batch.front(); }

template <class T>
static std::string refusal(const pipeline<T>& what) {
  runtime runtime({.threads = 2});
  auto items = runtime.run(what);
  try {
    items.state();
  } catch (const error& refused) {
    return refused.what();
  }
  return "none";
}

TEST(Through, WithoutARuleItsStateIsRefusedFromTheFirstCallOn) {
  auto list = from(up_to(10));
  EXPECT_THAT(
      refusal(list | through(pass_on)),
      HasSubstr("through does not say which of its input each of its items is made of: give "
                "it {.lineage = lade::lineage_rule::consumed}"));
  EXPECT_THAT(refusal(list | through(at_least, {.name = "at_least"}, 3)),
              HasSubstr("at_least does not say"));
  EXPECT_THAT(refusal(combine(pass_on, list)), HasSubstr("combine does not say"));
  EXPECT_EQ(refusal(list | through(at_least, consumed, 3)), "none");
  EXPECT_EQ(refusal(list | through(hold_one, carried)), "none");
  EXPECT_EQ(refusal(combine(pass_on, consumed, list)), "none");
}

TEST(State, IsRefusedFromTheFirstCallOn) {
  auto list = from(up_to(10));
  auto stream = list | map([](int i) { return i; });
  EXPECT_THAT(refusal(list | shard({}) | shuffle()), HasSubstr("shard is not the last step"));
  EXPECT_THAT(refusal(stream | shard({})), HasSubstr("shard counts the items of a stage"));
  EXPECT_THAT(refusal(merge(std::vector<pipeline<int>>{list, list | shard({.world = 2})})),
              HasSubstr("not dealt out alike"));
}

TEST(State, InACoroutineOfARuntimeIsNotWaitedFor) {
  runtime runtime({.threads = 2});
  gate opening;
  auto held_up = from([&] {
    opening.pass();
    return count_to(10);
  });
  auto ask = [&]() -> task<std::string> {
    auto items = runtime.run(held_up);
    std::string said;
    try {
      items.state();
    } catch (const error& refused) {
      said = refused.what();
    }
    opening.open();
    co_await items.next();
    said += std::to_string(items.state().delivered.size());
    co_return said;
  };
  EXPECT_THAT(detail::sync_wait_on(runtime.pool(), runtime, ask()),
              HasSubstr("its stages have not been opened yet"));
}

TEST(RequireState, RefusesAtTheStartWhatCannotBeExact) {
  runtime runtime({.threads = 2});
  auto list = from(up_to(10));
  auto running = [&](const pipeline<int>& what) {
    return [&runtime, what] { collect(runtime, what, {.require_state = true}); };
  };
  auto says = [](const char* why) { return ThrowsMessage<error>(HasSubstr(why)); };
  EXPECT_NO_THROW(running(list | through(pass_on, consumed))());
  EXPECT_THAT(running(list | through(pass_on)),
              says("begin a run with require_state: through does not say"));
  EXPECT_THAT(running(list | shard({}) | shuffle()), says("shard is not the last step"));
  EXPECT_THAT(running(list | map([](int i) { return i; }) | shard({})), says("shard counts"));
  EXPECT_THAT(running(merge(std::vector<pipeline<int>>{list, list | shard({.world = 2})})),
              says("not dealt out alike"));
}

TEST(Through, AStageThatBreaksItsRuleEndsTheRunAtThatItem) {
  runtime runtime({.threads = 2});
  auto list = from(up_to(10));
  auto failure_behind = [&](const pipeline<int>& what, int items) {
    auto run = runtime.run(what);
    for (int i = 0; i < items; ++i) run.wait_next();
    try {
      run.wait_next();
    } catch (const error& failure) {
      return std::string(failure.what());
    }
    return std::string("none");
  };
  auto twice = [](async_generator<int> in) -> async_generator<int> {
    while (auto* item = co_await in.next()) {
      co_yield *item;
      co_yield *item;
    }
  };
  EXPECT_THAT(failure_behind(list | through(twice, consumed), 1),
              HasSubstr("custom: follow lineage_rule::consumed: it yielded an item that is made of "
                        "nothing it has taken since the item before; flat_map"));
  auto without = [](async_generator<int> in) -> async_generator<int> {
    while (auto item = co_await in.next().held()) co_yield **item;
  };
  EXPECT_THAT(failure_behind(list | through(without, carried), 0),
              HasSubstr("custom: follow lineage_rule::carried: it yielded an item that is made of "
                        "nothing it has taken"));
  auto again = [](async_generator<int> in) -> async_generator<int> {
    while (auto item = co_await in.next().held()) {
      co_yield held<int>(**item, item->origin());
      co_yield std::move(*item);
    }
  };
  EXPECT_THAT(failure_behind(list | through(again, carried), 1),
              HasSubstr("it yielded an item of positions 0, which it has yielded before"));
  auto lose = [](async_generator<int> in) -> async_generator<int> {
    while (auto item = co_await in.next().held())
      if (**item % 4 != 1) co_yield std::move(*item);
  };
  EXPECT_THAT(failure_behind(list | through(lose, carried), 7),
              HasSubstr("it ended and never yielded what it had taken at positions 1, 5, 9"));
  EXPECT_THAT(failure_behind(combine(twice, consumed, list), 1),
              HasSubstr("lineage_rule::consumed"));
}

TEST(Through, WithoutARuleNothingIsChecked) {
  runtime runtime({.threads = 1});
  auto twice = through([](async_generator<int> in) -> async_generator<int> {
    while (auto* item = co_await in.next()) {
      co_yield *item;
      co_yield *item;
    }
  });
  EXPECT_EQ(collect(runtime, from(up_to(2)) | twice | through(pass_on, consumed)),
            (ints{0, 0, 1, 1}));
}

TEST(Through, BehindPartsOfItemsNothingIsChecked) {
  runtime runtime({.threads = 1});
  auto parts = from(up_to(3)) | flat_map([](int i) { return ints{i, i}; });
  EXPECT_EQ(collect(runtime, parts | through(swap_pairs, carried)).size(), 6u);
  EXPECT_EQ(collect(runtime, parts | through(hold_one, carried)).size(), 6u);
}

TEST(Held, ItemsComeOnceWhereverARunIsCut) {
  runtime runtime({.threads = 2});
  auto list = from(up_to(40)) | map([](int i) { return i; }, {.concurrency = 3});
  for (auto stage : {through(hold_one, carried), through(swap_pairs, carried)})
    for (std::size_t cut = 1; cut < 40; ++cut) {
      auto make = [&] { return list | stage; };
      ASSERT_EQ(sorted(with_interruptions(runtime, make, cut)), up_to(40)) << cut;
    }
  for (std::size_t cut = 1; cut < 40; ++cut)
    ASSERT_EQ(sorted(with_interruptions(
                  runtime, [&] { return list | through(shuffle_by_hand, carried, 16u); }, cut)),
              up_to(40));
}

// A random chain of custom stages between others, every time with other threads in it.
class custom_pipeline {
 public:
  explicit custom_pipeline(random draw) : draw_(draw), shape_(draw_()) {}

  pipeline<int> operator()() {
    random shape(shape_);
    in_order_ = true;
    bound_ = false;
    auto size = static_cast<int>(20 + shape.below(150));
    pipeline<int> made = from(up_to(size));
    if (shape.below(2)) made = made | shuffle({.seed = shape()});
    for (auto stages = 1 + shape.below(5); stages > 0; --stages) {
      made = with_custom(made, shape);
      made = with_other(made, shape);
    }
    return made;
  }

  // Whether the rest comes in the order of an uninterrupted run.
  bool in_order() const { return in_order_; }

 private:
  unsigned any_concurrency() { return static_cast<unsigned>(1 + draw_.below(6)); }

  pipeline<int> with_custom(const pipeline<int>& in, random& shape) {
    switch (bound_ ? 5 + shape.below(4) : shape.below(in_order_ ? 9 : 6)) {
      case 0: return in | through(at_least, consumed, static_cast<int>(shape.below(50)));
      case 1: return in | through(hold_one, carried);
      case 2: in_order_ = false; return in | through(swap_pairs, carried);
      case 3: in_order_ = false; return in | through(shuffle_by_hand, carried, 1 + shape.below(12));
      case 4: return in | through(drop_fives, carried);
      case 5: return combine(pass_on, consumed, in);
      case 6: return in | through(join_pairs, consumed);
      case 7: bound_ = true; return in | through(one_of_neighbours, carried);
      default:
        return in | through(batch_by_hand, carried, 1 + shape.below(4)) |
               map(first_of, {.concurrency = any_concurrency()});
    }
  }

  pipeline<int> with_other(const pipeline<int>& in, random& shape) {
    switch (bound_ ? 0 : shape.below(6)) {
      case 0: return in | map(same_later, {.concurrency = any_concurrency()});
      case 1:
        in_order_ = false;
        return in |
               map(same_later, {.concurrency = any_concurrency(), .order = item_order::completion});
      case 2:
        in_order_ = false;
        return in | route([](int i) { return i % 2; }, through(pass_on, consumed),
                          chain(through(hold_one, carried), through(drop_fives, carried)));
      case 3: {
        in_order_ = false;
        auto more = from_index(30, [](std::uint64_t i) { return 7000 + static_cast<int>(i); });
        return merge(std::vector{in, more | through(swap_pairs, carried)});
      }
      default: return in;
    }
  }

  static task<int> same_later(int i, random draw) {
    co_await sleep(std::chrono::microseconds(draw.below(200)));
    co_return i;
  }

  random draw_;
  std::uint64_t shape_;
  bool in_order_ = true;
  bool bound_ = false;  // what are neighbours depends on the order, which may not change any more
};

TEST(Held, RandomCustomStagesDeliverWhatAnUninterruptedRunDoes) {
  auto seed = new_seed();
  runtime first({.threads = 3});
  for (std::uint64_t i = 0; i < 150; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pipeline " + std::to_string(i));
    random draw(seed, i);
    custom_pipeline make(draw);
    auto whole = collect(first, make(), {.require_state = true});
    auto parts = with_restarts(draw, std::ref(make), 1 + draw.below(40), {.require_state = true});
    if (!make.in_order()) {
      std::ranges::sort(parts);
      std::ranges::sort(whole);
    }
    ASSERT_EQ(parts, whole);
  }
}

TEST(Held, PartsAreMadeBehindAFilter) {
  runtime runtime({.threads = 2});
  auto make = [] {
    return from(up_to(40)) | through(at_least, consumed, 3) |
           flat_map([](int i) { return ints(static_cast<std::size_t>(i % 4), i); });
  };
  EXPECT_EQ(with_interruptions(runtime, make, 3), collect(runtime, make()));
}

TEST(Held, ASortedRestIsTheRestOfTheSorted) {
  runtime runtime({.threads = 2});
  auto make = [] { return from(up_to(60)) | shuffle({.seed = 5}) | through(sort_all, carried); };
  EXPECT_EQ(with_interruptions(runtime, make, 7), up_to(60));
}

}  // namespace lade
