// Custom stages: which rule they follow, and what a run delivers that resumes behind them.

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
#include <lade/state.hpp>
#include <lade/through.hpp>

#include "../support/later.hpp"
#include "../support/pipelines.hpp"
#include "../support/resume.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lade::held_test {

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

// A number that identifies both, in any order of joins.
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

// Joins neighbours with the same quotient by 3.
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

// Of all items of a batch.
static int digest_of(const ints& batch) {
  int all = 0;
  for (auto item : batch) all = joined(item, all);
  return all;
}

TEST(Held, ItemsAreCollatedInTheirOrderWithTheLineagesOfAll) {
  std::vector<held<std::string>> items;
  items.emplace_back("a", lineage(7));
  items.emplace_back("b", lineage(2));
  items.emplace_back("c", lineage(3));
  auto batch = collate(std::move(items));
  EXPECT_EQ(*batch, (std::vector<std::string>{"a", "b", "c"}));
  lineage all(2);
  all.add(3);
  all.add(7);
  EXPECT_EQ(batch.origin(), all);
  auto none = collate(std::vector<held<std::string>>());
  EXPECT_TRUE(none->empty());
  EXPECT_EQ(none.origin(), lineage());
}

TEST(Held, WithPassesTheLineageToTheNewItem) {
  held<int> number(5, lineage(3));
  auto text = std::move(number).with(std::string("five"));
  static_assert(std::same_as<decltype(text), held<std::string>>);
  EXPECT_EQ(*text, "five");
  EXPECT_EQ(text.origin(), lineage(3));
  EXPECT_EQ(number.origin(), lineage()) << "it has given it away";
}

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
  EXPECT_THAT(refusal(list | through(pass_on)),
              HasSubstr("the lineage of through is unknown. Set "
                        "through_options::lineage to lineage_rule::consumed"));
  EXPECT_THAT(refusal(list | through(at_least, {.name = "at_least"}, 3)),
              HasSubstr("lineage of at_least is unknown"));
  EXPECT_THAT(refusal(combine(pass_on, list)), HasSubstr("lineage of combine is unknown"));
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
              HasSubstr("not sharded in the same way"));
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
      EXPECT_EQ(refused.code(), errc::wrong_thread);
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
              says("begin a run with require_state: the lineage of through is unknown"));
  EXPECT_THAT(running(list | shard({}) | shuffle()), says("shard is not the last step"));
  EXPECT_THAT(running(list | map([](int i) { return i; }) | shard({})), says("shard counts"));
  EXPECT_THAT(running(merge(std::vector<pipeline<int>>{list, list | shard({.world = 2})})),
              says("not sharded in the same way"));
}

TEST(RequireState, EndsTheRunAtTheItemWhereItTurnsOutThatAStateCannotBeExact) {
  runtime runtime({.threads = 2});
  auto first = [](async_generator<int> in) -> async_generator<int> {
    auto* item = co_await in.next();
    if (item) co_yield *item;
  };
  auto items = runtime.run(from(up_to(100)) | route([](int i) { return i < 20 ? 0 : 1; }, chain(),
                                                    through(first, consumed)),
                           {.require_state = true});
  ints delivered;
  EXPECT_THAT(
      [&] {
        while (auto item = items.wait_next()) delivered.push_back(*item);
      },
      ThrowsMessage<error>(HasSubstr("a path of route has ended before its items")));
  EXPECT_GE(delivered.size(), 21u) << "what was before that";
  EXPECT_LT(delivered.size(), 30u);
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
              HasSubstr("custom: follow lineage_rule::consumed: it yielded an item without "
                        "lineage: take an input for each item"));
  auto without = [](async_generator<int> in) -> async_generator<int> {
    while (auto item = co_await in.next().held()) co_yield **item;
  };
  EXPECT_THAT(failure_behind(list | through(without, carried), 0),
              HasSubstr("custom: follow lineage_rule::carried: it yielded an item without "
                        "lineage: "));
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
  EXPECT_THAT(
      failure_behind(list | through(lose, carried), 7),
      HasSubstr("it ended without yielding the items that it had taken at positions 1, 5, 9"));
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

TEST(Through, BehindAFlatMapNothingIsChecked) {
  runtime runtime({.threads = 1});
  auto parts = from(up_to(3)) | flat_map([](int i) { return ints{i, i}; });
  EXPECT_EQ(collect(runtime, parts | through(swap_pairs, carried)).size(), 6u);
  EXPECT_EQ(collect(runtime, parts | through(hold_one, carried)).size(), 6u);
}

TEST(Held, ItemsAreDeliveredOnceWhereverARunIsInterrupted) {
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

// What is made of an item.
using parting = ints (*)(int);
static ints digits_of(int i) { return {i / 10, i % 10}; }
static ints copies_of(int i) { return ints(static_cast<std::size_t>(i % 4), i); }
static ints once_or_not(int i) { return ints(i % 3 ? 1 : 0, i); }

// The same by custom stages. They note whether they have made several items of one.
static async_generator<int> part_by_hand(async_generator<int> in, parting function,
                                         std::atomic<bool>* several) {
  while (auto* item = co_await in.next()) {
    auto parts = function(*item);
    if (parts.size() > 1) *several = true;
    for (int part : parts) co_yield part;
  }
}

static async_generator<int> part_held(async_generator<int> in, parting function,
                                      std::atomic<bool>* several) {
  while (auto item = co_await in.next().held()) {
    auto parts = function(**item);
    if (parts.empty()) co_await item->drop();
    if (parts.size() > 1) *several = true;
    for (int part : parts) co_yield held<int>(part, item->origin());
  }
}

// A random chain of custom stages between others, every time with other threads in it.
class custom_pipeline {
 public:
  // Where several items are made of one, among the custom stages.
  enum class where { nowhere, before, behind, behind_consumers };

  // By flat_map, or by a custom stage that says it follows that rule.
  custom_pipeline(random draw, where parts, std::optional<lineage_rule> by_hand = {})
      : draw_(draw), shape_(draw_()), parts_(parts), by_hand_(by_hand) {}

  pipeline<int> operator()() {
    random shape(shape_);
    in_order_ = true;
    bound_ = false;
    auto size = static_cast<int>(20 + shape.below(150));
    pipeline<int> made = from(up_to(size));
    if (shape.below(2)) made = made | shuffle({.seed = shape()});
    if (parts_ == where::before) made = in_parts(made, shape);
    for (auto stages = 1 + shape.below(5); stages > 0; --stages) {
      made = with_custom(made, shape);
      made = with_other(made, shape);
    }
    return parts_ >= where::behind ? in_parts(made, shape) : made;
  }

  // Whether it cannot be gone on with.
  bool must_be_refused() const { return parts_ == where::before; }
  bool may_be_refused() const { return parts_ == where::before || parts_ == where::behind; }

  // Whether a custom stage has made several items of one.
  bool has_made_several() const { return has_made_several_; }

  // Whether the rest comes in the order of an uninterrupted run.
  bool in_order() const { return in_order_; }

 private:
  unsigned any_concurrency() { return static_cast<unsigned>(1 + draw_.below(6)); }

  pipeline<int> in_parts(const pipeline<int>& in, random& shape) {
    const parting all[] = {digits_of, copies_of, once_or_not};
    auto function = all[shape.below(3)];
    if (!by_hand_) return in | flat_map(function, {.concurrency = any_concurrency()});
    return in | through(by_hand_ == lineage_rule::carried ? part_held : part_by_hand,
                        {.name = "parts", .lineage = *by_hand_}, function, &has_made_several_);
  }

  pipeline<int> with_custom(const pipeline<int>& in, random& shape) {
    if (parts_ == where::behind_consumers) return with_consumer(in, shape);
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
               map(digest_of, {.concurrency = any_concurrency()});
    }
  }

  static pipeline<int> with_consumer(const pipeline<int>& in, random& shape) {
    switch (shape.below(3)) {
      case 0: return in | through(at_least, consumed, static_cast<int>(shape.below(50)));
      case 1: return combine(pass_on, consumed, in);
      default: return in | through(join_pairs, consumed);
    }
  }

  pipeline<int> with_other(const pipeline<int>& in, random& shape) {
    switch (bound_ || parts_ == where::behind_consumers ? 0 : shape.below(6)) {
      case 0: return in | map(same_later<int>, {.concurrency = any_concurrency()});
      case 1:
        in_order_ = false;
        return in | map(same_later<int>,
                        {.concurrency = any_concurrency(), .order = item_order::completion});
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

  random draw_;
  std::uint64_t shape_;
  where parts_;
  std::optional<lineage_rule> by_hand_;
  std::atomic<bool> has_made_several_ = false;
  bool in_order_ = true;
  bool bound_ = false;  // what are neighbours depends on the order, which may not change any more
};

// What a run delivers that must have a state; nothing if it is refused.
static std::optional<ints> collect_with_state(runtime& where, const pipeline<int>& what) {
  try {
    return collect(where, what, {.require_state = true});
  } catch (const error& refused) {
    EXPECT_THAT(refused.what(), HasSubstr("begin a run with require_state: "));
    EXPECT_THAT(refused.what(), HasSubstr("several items of one"));
    return std::nullopt;
  }
}

static ints sorted_unless(bool in_order, const ints& items) {
  return in_order ? items : sorted(items);
}

TEST(Held, RandomCustomStagesDeliverWhatAnUninterruptedRunDoes) {
  auto seed = new_seed();
  runtime first({.threads = 3});
  for (std::uint64_t i = 0; i < 150; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pipeline " + std::to_string(i));
    random draw(seed, i);
    auto parts = static_cast<custom_pipeline::where>(draw.below(4));
    custom_pipeline make(draw, parts);
    auto whole = collect_with_state(first, make());
    ASSERT_TRUE(whole || make.may_be_refused());
    ASSERT_FALSE(whole && make.must_be_refused());
    if (!whole) continue;
    auto rest = with_restarts(draw, std::ref(make), 1 + draw.below(40), {.require_state = true});
    ASSERT_EQ(sorted_unless(make.in_order(), rest), sorted_unless(make.in_order(), *whole));
  }
}

// What a run delivers, and what it fails with.
struct outcome {
  ints delivered;
  std::string failure = "none";
};
static outcome outcome_of(runtime& where, const pipeline<int>& what) {
  outcome result;
  auto items = where.run(what);
  try {
    while (auto item = items.wait_next()) result.delivered.push_back(*item);
  } catch (const error& failure) {
    result.failure = failure.what();
  }
  return result;
}

static std::string following(lineage_rule rule) {
  return rule == lineage_rule::consumed ? "follow lineage_rule::consumed"
                                        : "follow lineage_rule::carried";
}

TEST(Through, RandomStagesThatMakeSeveralItemsOfOneHaveNoStateOrEndTheRun) {
  auto seed = new_seed();
  runtime where({.threads = 3});
  for (std::uint64_t i = 0; i < 120; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pipeline " + std::to_string(i));
    random draw(seed, i);
    auto parts = static_cast<custom_pipeline::where>(1 + draw.below(3));
    auto rule = static_cast<lineage_rule>(draw.below(3));
    custom_pipeline expected(draw, parts), make(draw, parts, rule);
    auto whole = collect(where, expected());
    auto in_order = expected.in_order();
    auto [delivered, failure] = outcome_of(where, make());
    if (rule != lineage_rule::unspecified && make.has_made_several()) {
      ASSERT_THAT(failure, HasSubstr("parts: " + following(rule)));
      continue;
    }
    ASSERT_EQ(failure, "none");
    ASSERT_EQ(sorted_unless(in_order, delivered), sorted_unless(in_order, whole));
    if (rule == lineage_rule::unspecified) {
      ASSERT_THAT(refusal(make()), HasSubstr("the lineage of parts is unknown"));
    } else {
      auto rest = with_restarts(draw, std::ref(make), 1 + draw.below(40), {.require_state = true});
      ASSERT_EQ(sorted_unless(in_order, rest), sorted_unless(in_order, whole));
    }
  }
}

// Ways to break a rule: at one item, or where the stage begins or ends.
enum class breach { again, without_lineage, of_others, lost, first, last, held_back };

static constexpr auto nowhere = ~std::uint64_t{0} - 1;  // a position that no source has

// Each notes what it yields while it follows the rule.
static async_generator<int> break_carried(async_generator<int> in, breach how, std::size_t kept,
                                          ints* rightly) {
  std::size_t count = 0;
  while (auto item = co_await in.next().held()) {
    int number = **item;
    held<int> another(number, how == breach::again ? item->origin() : lineage(nowhere));
    bool breaks = count++ == kept;
    if (!breaks || how == breach::again) {
      rightly->push_back(number);
      co_yield std::move(*item);
    }
    if (breaks && how == breach::without_lineage) co_yield number;
    if (breaks && (how == breach::again || how == breach::of_others)) co_yield std::move(another);
  }
}

static async_generator<int> break_consumed(async_generator<int> in, breach how, std::size_t kept,
                                           ints* rightly) {
  std::size_t count = 0;
  std::optional<int> before;
  int one_more = 7;
  if (how == breach::first) co_yield one_more;
  while (auto* item = co_await in.next()) {
    auto next = how == breach::held_back ? std::exchange(before, *item) : *item;
    if (!next) continue;
    rightly->push_back(*next);
    co_yield *next;
    if (how == breach::again && count++ == kept) co_yield *next;
  }
  if (before) co_yield *before;
  if (how == breach::last) co_yield one_more;
}

TEST(Through, RandomStagesThatBreakTheirRuleEndTheRunThere) {
  auto seed = new_seed();
  runtime where({.threads = 3});
  for (std::uint64_t i = 0; i < 120; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", pipeline " + std::to_string(i));
    random draw(seed, i);
    custom_pipeline before(draw, custom_pipeline::where::nowhere);
    auto count = collect(where, before()).size();
    auto how = static_cast<breach>(draw.below(7));
    auto rule = how > breach::lost || (how == breach::again && draw.below(2))
                    ? lineage_rule::consumed
                    : lineage_rule::carried;
    if (how == breach::held_back && count == 1) continue;  // it may come at the end
    bool breaks = count > 0 || how == breach::first || how == breach::last;
    ints rightly;
    auto breaking = through(rule == lineage_rule::consumed ? break_consumed : break_carried,
                            {.name = "breaking", .lineage = rule}, how,
                            count > 0 ? draw.below(count) : 0, &rightly);
    auto later = map(same_later<int>, {.concurrency = static_cast<unsigned>(1 + draw.below(6))});
    auto [delivered, failure] =
        outcome_of(where, before() | breaking | later | through(pass_on, consumed) | later);
    ASSERT_EQ(delivered, rightly);
    ASSERT_THAT(failure, HasSubstr(breaks ? "breaking: " + following(rule) : "none"));
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

TEST(Held, SortedItemsStaySortedAcrossInterruptions) {
  runtime runtime({.threads = 2});
  auto make = [] { return from(up_to(60)) | shuffle({.seed = 5}) | through(sort_all, carried); };
  EXPECT_EQ(with_interruptions(runtime, make, 7), up_to(60));
}

}  // namespace lade::held_test
