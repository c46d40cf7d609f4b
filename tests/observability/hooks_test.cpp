#include <lade/batch.hpp>
#include <lade/cut.hpp>
#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/hooks.hpp>
#include <lade/map.hpp>
#include <lade/pad.hpp>
#include <lade/random.hpp>
#include <lade/run.hpp>
#include <lade/sample.hpp>
#include <lade/task.hpp>
#include <lade/tensor.hpp>
#include <lade/waiting_items.hpp>

#include "../support/pipelines.hpp"
#include "../support/seed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <any>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lade::hooks_test {

using namespace test;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;
using testing::ThrowsMessage;
using testing::UnorderedElementsAre;

static std::string text_of(const std::exception_ptr& failure) {
  if (!failure) return "";
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    return std::string(" ") + e.what();
  }
}

// Records each call as a line.
class noting : public run_hooks {
 public:
  std::vector<std::string> stages() const { return copy(stages_); }
  std::vector<std::string> items() const { return copy(items_); }

 private:
  using lines = std::vector<std::string>;

  void enter_stage(std::string_view stage) override { note(stages_, "+" + std::string(stage)); }
  void leave_stage(std::string_view stage, const std::exception_ptr& failure) override {
    note(stages_, "-" + std::string(stage) + text_of(failure));
  }
  void enter_item(const item_call& call) override { note(items_, "+" + name(call)); }
  void leave_item(const item_call& call, const std::exception_ptr& failure) override {
    note(items_, "-" + name(call) + text_of(failure));
  }

  static std::string name(const item_call& call) {
    return std::string(call.stage) + " " + std::string(call.item) + " @" +
           to_string(call.positions) + " #" + std::to_string(call.attempt);
  }
  void note(lines& to, std::string line) {
    std::lock_guard lock(mutex_);
    to.push_back(std::move(line));
  }
  lines copy(const lines& from) const {
    std::lock_guard lock(mutex_);
    return from;
  }

  mutable std::mutex mutex_;
  lines stages_;
  lines items_;
};

static int refuse_two(int i) {
  if (i == 2) throw std::runtime_error("two");
  return 10 + i;
}

TEST(Hooks, AreCalledAroundEveryItem) {
  runtime runtime({.threads = 2});
  noting hooks;
  auto kept = from(numbers{2}) | map([](int i) { return 10 + i; }, {.name = "add"}) |
              filter([](int i) { return i > 10; }, {.name = "big"}) |
              flat_map([](int i) { return std::vector<int>{i, i}; }, {.name = "twice"});
  EXPECT_THAT(collect(runtime, kept, {.hooks = &hooks}), ElementsAre(11, 11));
  EXPECT_THAT(hooks.items(),
              UnorderedElementsAre("+add 0 @0 #1", "-add 0 @0 #1", "+add 1 @1 #1", "-add 1 @1 #1",
                                   "+big 10 @0 #1", "-big 10 @0 #1", "+big 11 @1 #1",
                                   "-big 11 @1 #1", "+twice 11 @0-1 #1", "-twice 11 @0-1 #1"));
}

TEST(Hooks, SeeFailuresWhateverBecomesOfThem) {
  runtime runtime({.threads = 2});
  for (unsigned concurrency : {1u, 3u}) {
    noting hooks;
    map_options options{
        .concurrency = concurrency, .retry = {.attempts = concurrency, .pause = {}}, .name = "add"};
    options.on_error = on_error::skip;
    collect(runtime, from(numbers{3}) | map(refuse_two, options), {.hooks = &hooks});
    for (unsigned attempt = 1; attempt <= concurrency; ++attempt)
      EXPECT_THAT(hooks.items(), Contains("-add 2 @2 #" + std::to_string(attempt) + " two"));
    EXPECT_THAT(hooks.items(), SizeIs(4 + 2 * concurrency));
  }
}

// Writes the number that a sample's key is.
struct key_writer {
  tensor_spec spec() const { return {element_type::i32, {1}}; }
  void operator()(const sample& in, const tensor& slot) const {
    *slot.data<std::int32_t>() = refuse_two(std::stoi(in.key()));
  }
};

TEST(Hooks, AreCalledAroundEveryItemOfABatch) {
  runtime runtime({.threads = 2});
  noting hooks;
  auto samples = from(numbers{3}) | map([](int i) { return sample(std::to_string(i), i); },
                                        {.concurrency = 2, .name = "name"});
  collect(runtime, samples | batch_into(key_writer(), {.size = 2, .name = "write"}),
          {.on_error = on_error::skip, .hooks = &hooks});
  EXPECT_THAT(hooks.items(),
              IsSupersetOf({"+write 0 @0 #1", "-write 0 @0 #1", "+write 1 @1 #1", "-write 1 @1 #1",
                            "+write 2 @2 #1", "-write 2 @2 #1 two"}));
  EXPECT_THAT(hooks.items(), SizeIs(12));
}

TEST(Hooks, AreCalledAroundEveryBatchThatBecomesATensor) {
  runtime runtime({.threads = 2});
  auto sequences = from(std::vector<std::vector<int>>{{1}, {2, 3}, {4}}) | batch(2);
  auto calls_of = [&](const auto& what) {
    noting hooks;
    collect(runtime, what, {.hooks = &hooks});
    return hooks.items();
  };
  EXPECT_THAT(calls_of(sequences | pad()),
              UnorderedElementsAre("+pad  @0-1 #1", "-pad  @0-1 #1", "+pad  @2 #1", "-pad  @2 #1"));
  EXPECT_THAT(calls_of(sequences | pack()), UnorderedElementsAre("+pack  @0-1 #1", "-pack  @0-1 #1",
                                                                 "+pack  @2 #1", "-pack  @2 #1"));
}

TEST(Hooks, AreLeftForAnItemWhosePartsAreNotAllConsumed) {
  runtime runtime({.threads = 2});
  for (unsigned concurrency : {1u, 2u}) {
    noting hooks;
    auto endless = flat_map([](int) { return count_to(-1); },
                            {.concurrency = concurrency, .buffer = 2, .name = "endless"});
    EXPECT_THAT(collect(runtime, from(numbers{2}) | endless | take(3), {.hooks = &hooks}),
                ElementsAre(0, 1, 2));
    {
      auto items = runtime.run(from(numbers{2}) | endless, {.hooks = &hooks});
      EXPECT_EQ(items.wait_next(), 0);
    }
    auto recorded = hooks.items();
    EXPECT_THAT(recorded, Contains("-endless 0 @0 #1").Times(2));
    EXPECT_EQ(std::ranges::count(recorded, '+', [](auto& line) { return line[0]; }),
              std::ranges::count(recorded, '-', [](auto& line) { return line[0]; }));
  }
}

TEST(Hooks, AreCalledAroundEveryStage) {
  runtime runtime({.threads = 2});
  noting hooks;
  auto doubled = from(std::vector<int>{1, 2}) |
                 map([](int i) { return 2 * i; }, {.name = "double"}) | prefetch(2);
  collect(runtime, doubled, {.hooks = &hooks});
  EXPECT_THAT(hooks.stages(), UnorderedElementsAre("+source", "-source", "+double", "-double",
                                                   "+prefetch", "-prefetch"));
}

TEST(Hooks, SeeAStageThatFailsAndOneThatIsLeft) {
  runtime runtime({.threads = 2});
  noting hooks;
  auto failing =
      from(numbers{5}) | map(refuse_two, {.concurrency = 1, .name = "add"}) | prefetch(1);
  EXPECT_THROW(collect(runtime, failing, {.hooks = &hooks}), stage_error);
  EXPECT_THAT(hooks.stages(), IsSupersetOf({"-source", "-add add (2): two"}));
  noting others;
  {
    auto items = runtime.run(from(numbers{-1}) | filter([](int) { return true; }, {.name = "all"}),
                             {.hooks = &others});
    items.wait_next();
  }
  // Whether a stage is stopped or no longer asked is a matter of time.
  for (auto stage : {"source", "all"}) {
    EXPECT_THAT(others.stages(), Contains("+" + std::string(stage)));
    EXPECT_THAT(others.stages(), Contains(StartsWith("-" + std::string(stage))));
  }
}

// Throws in one of its functions.
class throwing : public run_hooks {
 public:
  enum function { enters_stage, leaves_stage, enters_item, leaves_item };
  explicit throwing(function where) : where_(where) {}

 private:
  void enter_stage(std::string_view) override { throw_in(enters_stage); }
  void leave_stage(std::string_view, const std::exception_ptr&) override { throw_in(leaves_stage); }
  void enter_item(const item_call&) override { throw_in(enters_item); }
  void leave_item(const item_call&, const std::exception_ptr&) override { throw_in(leaves_item); }
  void throw_in(function here) const {
    if (here == where_) throw std::domain_error("hook");
  }

  function where_;
};

TEST(Hooks, OfAStageThatThrowEndTheRunAndReachTheConsumer) {
  runtime runtime({.threads = 2});
  for (unsigned concurrency : {1u, 4u})
    for (auto where : {throwing::enters_stage, throwing::leaves_stage}) {
      throwing hooks(where);
      auto doubled = from(numbers{where == throwing::leaves_stage ? 10 : -1}) |
                     map([](int i) { return 2 * i; }, {.concurrency = concurrency}) | prefetch(2);
      EXPECT_THAT([&] { collect(runtime, doubled, {.hooks = &hooks}); },
                  ThrowsMessage<std::domain_error>("hook"))
          << where;
    }
}

// The stages of a failed run are left, and items abandoned, before its failure reaches the
// consumer.
TEST(Hooks, ThatThrowWhenAFailedRunIsLeftDoNotReplaceItsFailure) {
  runtime runtime({.threads = 2});
  for (unsigned concurrency : {1u, 4u})
    for (auto where : {throwing::leaves_stage, throwing::leaves_item}) {
      throwing hooks(where);
      auto refuse = [](int) -> int { throw std::runtime_error("refused"); };
      auto failing =
          from(numbers{-1}) |
          flat_map([](int i) { return std::vector(1000, i); }, {.concurrency = concurrency}) |
          map(refuse, {.concurrency = concurrency});
      EXPECT_THAT([&] { collect(runtime, failing, {.hooks = &hooks}); },
                  ThrowsMessage<stage_error>(HasSubstr("refused")))
          << where;
    }
}

TEST(Hooks, OfAnItemThatThrowFailTheItem) {
  runtime runtime({.threads = 2});
  for (unsigned concurrency : {1u, 4u})
    for (auto where : {throwing::enters_item, throwing::leaves_item}) {
      throwing hooks(where);
      std::atomic<int> calls = 0;
      auto call = [&](int i) {
        ++calls;
        return i;
      };
      auto same = [&](map_options how) {
        how.concurrency = concurrency;
        how.name = "same";
        return from(numbers{3}) | map(call, how);
      };
      EXPECT_THAT([&] { collect(runtime, same({}), {.hooks = &hooks}); },
                  ThrowsMessage<stage_error>(StartsWith("same (0): hook")));
      EXPECT_THAT(collect(runtime, same({.substitute = -1}), {.hooks = &hooks}),
                  ElementsAre(-1, -1, -1));
      calls = 0;
      auto items = runtime.run(same({.on_error = on_error::skip}), {.hooks = &hooks});
      EXPECT_THAT(collect(items), IsEmpty());
      EXPECT_EQ(items.statistics().stages.at(1).skipped, 3u);
      EXPECT_EQ(calls, where == throwing::enters_item ? 0 : 3);
    }
}

TEST(Hooks, OfPartsThatThrowFailTheItem) {
  runtime runtime({.threads = 2});
  for (unsigned concurrency : {1u, 2u})
    for (auto where : {throwing::enters_item, throwing::leaves_item}) {
      throwing hooks(where);
      auto twice = from(numbers{2}) | flat_map([](int i) { return std::vector<int>{i, i}; },
                                               {.concurrency = concurrency, .name = "twice"});
      EXPECT_THAT([&] { collect(runtime, twice, {.hooks = &hooks}); },
                  ThrowsMessage<stage_error>(StartsWith("twice (0): hook")));
      run_options skipping{.on_error = on_error::skip, .hooks = &hooks};
      auto given = collect(runtime, twice, skipping);
      if (where == throwing::enters_item)
        EXPECT_THAT(given, IsEmpty());
      else
        EXPECT_THAT(given, ElementsAre(0, 0, 1, 1));  // which went on before the item was left
    }
}

TEST(Hooks, ThatThrowForAnItemThatIsLeftEarlyEndTheRun) {
  runtime runtime({.threads = 2});
  for (unsigned concurrency : {1u, 2u}) {
    throwing hooks(throwing::leaves_item);
    auto endless = flat_map([](int) { return count_to(-1); }, {.concurrency = concurrency});
    EXPECT_THAT([&] { collect(runtime, from(numbers{1}) | endless | take(3), {.hooks = &hooks}); },
                ThrowsMessage<std::domain_error>("hook"));
  }
}

// Throws for the first attempts of each item.
class impatient : public run_hooks {
 public:
  explicit impatient(bool on_entry) : on_entry_(on_entry) {}

 private:
  void enter_item(const item_call& call) override { refuse(on_entry_, call); }
  void leave_item(const item_call& call, const std::exception_ptr&) override {
    refuse(!on_entry_, call);
  }
  static void refuse(bool here, const item_call& call) {
    if (here && call.attempt < 3) throw std::runtime_error("not yet");
  }

  bool on_entry_;
};

// Needs memory that it never takes.
struct memory_hungry {
  static constexpr std::size_t memory_needed(int) { return 1000; }
  int operator()(int item) const { return item; }
};

static async_generator<int> one_and_wait(event& end) {
  int item = 1;
  co_yield item;
  co_await end;
}

class refusing : public run_hooks {
 public:
  std::atomic<int> refused = 0;

 private:
  void enter_item(const item_call&) override {
    ++refused;
    throw std::runtime_error("no");
  }
};

TEST(Hooks, ThatThrowLeaveNoMemoryReserved) {
  runtime runtime({.threads = 2, .memory_bytes = 1000});
  refusing hooks;
  event end;
  auto items = from([&end] { return one_and_wait(end); }) |
               map(memory_hungry(), {.concurrency = 2, .on_error = on_error::skip});
  auto run = runtime.run(items, {.hooks = &hooks});
  wait_until([&] { return hooks.refused == 1; });
  wait_until([&] { return runtime.memory().try_allocate(900).has_value(); });
  end.set();
  EXPECT_FALSE(run.wait_next());
}

static task<std::string> text_later(std::string text) { co_return text; }

TEST(Hooks, ThatThrowHaveTheItemTriedAgain) {
  runtime runtime({.threads = 2});
  for (bool on_entry : {true, false}) {
    impatient hooks(on_entry);
    auto texts = from(std::vector<std::string>{"a long text that is on the heap", "b"});
    map_options how{.retry = {.attempts = 3, .pause = {}}};
    for (auto& all :
         {texts | map([](std::string text) { return text; }, how), texts | map(text_later, how)}) {
      auto items = runtime.run(all, {.hooks = &hooks});
      EXPECT_THAT(collect(items), ElementsAre("a long text that is on the heap", "b"));
      EXPECT_EQ(items.statistics().stages.at(1).retried, 4u);
    }
  }
}

TEST(Hooks, SeeTheItemAndTheResult) {
  runtime runtime({.threads = 2});
  struct looking : run_hooks {
    void enter_item(const item_call& call) override {
      EXPECT_EQ(call.item_as<std::string>(), nullptr);
      EXPECT_EQ(call.result_as<std::string>(), nullptr);
      std::lock_guard lock(mutex);
      seen.push_back("in " + (call.item_as<int>() ? std::to_string(*call.item_as<int>()) : "none"));
    }
    void leave_item(const item_call& call, const std::exception_ptr&) override {
      EXPECT_EQ(call.item_as<int>(), nullptr);
      EXPECT_EQ(call.result_as<int>(), nullptr);
      std::lock_guard lock(mutex);
      auto* result = call.result_as<std::string>();
      seen.push_back("out " + (result ? *result : "none"));
    }
    std::mutex mutex;
    std::vector<std::string> seen;
  };
  auto text = [](int i) -> std::optional<std::string> {
    if (i == 1) return std::nullopt;
    return "text " + std::to_string(refuse_two(i));
  };
  auto text_of_task = [=](int i) -> task<std::optional<std::string>> { co_return text(i); };
  run_options skipping{.on_error = on_error::skip};
  for (auto& texts : {from(numbers{4}) | map(text, {.concurrency = 1}),
                      from(numbers{4}) | map(text, {.concurrency = 3}),
                      from(numbers{4}) | map(text_of_task, {.concurrency = 3})}) {
    looking hooks;
    skipping.hooks = &hooks;
    collect(runtime, texts, skipping);
    EXPECT_THAT(hooks.seen, UnorderedElementsAre("in 0", "out text 10", "in 1", "out none", "in 2",
                                                 "out none", "in 3", "out text 13"));
  }
}

TEST(Hooks, SeeTheSamplesOfABatchAndTheGroupThatIsSplit) {
  runtime runtime({.threads = 2});
  struct looking : run_hooks {
    void enter_item(const item_call& call) override {
      if (auto* one = call.item_as<sample>()) keys += one->key();
      if (auto* group = call.item_as<std::vector<int>>()) members += group->size();
    }
    void leave_item(const item_call& call, const std::exception_ptr&) override {
      if (auto* one = call.result_as<sample>()) results += one->key();
    }
    std::string keys;
    std::string results;
    std::size_t members = 0;
  } hooks;
  std::vector<sample> samples{sample("0", 0), sample("1", 1)};
  collect(runtime, from(samples) | batch_into(key_writer(), {.size = 2, .concurrency = 1}),
          {.hooks = &hooks});
  EXPECT_EQ(hooks.keys, "01");
  EXPECT_EQ(hooks.results, "01");
  auto apart = flat_map([](std::vector<int> all) { return all; });
  collect(runtime, from(numbers{5}) | batch(2) | apart, {.hooks = &hooks});
  EXPECT_EQ(hooks.members, 5u);
}

// Records the calls of several objects in one list.
class numbered : public run_hooks {
 public:
  using lines = std::vector<std::string>;

  numbered(int number, lines& to, std::string throws = {})
      : number_(std::to_string(number)), to_(to), throws_(std::move(throws)) {}

 private:
  void enter_stage(std::string_view stage) override { note("+" + std::string(stage)); }
  void leave_stage(std::string_view stage, const std::exception_ptr&) override {
    note("-" + std::string(stage));
  }
  void enter_item(const item_call&) override { note("+item"); }
  void leave_item(const item_call& call, const std::exception_ptr& failure) override {
    EXPECT_EQ(call.result_as<int>() == nullptr, failure != nullptr);
    note("-item", text_of(failure));
  }
  void note(const std::string& what, const std::string& failure = {}) {
    to_.push_back(number_ + what + failure);
    if (what == throws_) throw std::domain_error(number_);
  }

  std::string number_;
  lines& to_;
  std::string throws_;
};

TEST(Hooks, OfSeveralObjectsAreEnteredInOrderAndLeftInReverse) {
  runtime runtime({.threads = 1});
  numbered::lines recorded;
  numbered first(1, recorded), second(2, recorded), third(3, recorded);
  auto one = from(numbers{1}) | map([](int i) { return i; }, {.concurrency = 1, .name = "same"});
  collect(runtime, one, {.hooks = {&first, nullptr, &second, &third}});
  EXPECT_THAT(recorded,
              ElementsAre("1+same", "2+same", "3+same", "1+source", "2+source", "3+source",
                          "1+item", "2+item", "3+item", "3-item", "2-item", "1-item", "3-source",
                          "2-source", "1-source", "3-same", "2-same", "1-same"));
}

static std::vector<std::string> told_of_items(runtime& runtime, const std::string& second_throws,
                                              const std::string& third_throws, int items_from = 0) {
  numbered::lines recorded;
  numbered first(1, recorded), second(2, recorded, second_throws), third(3, recorded, third_throws);
  auto one = from(std::vector{items_from}) | map(refuse_two, {.concurrency = 1});
  collect(runtime, one, {.on_error = on_error::skip, .hooks = {&first, &second, &third}});
  std::erase_if(recorded, [](auto& line) { return line.find("item") == std::string::npos; });
  return recorded;
}

TEST(Hooks, ThatThrowOnEntryAreNotLeftAndThoseBehindAreNotEntered) {
  runtime runtime({.threads = 1});
  EXPECT_THAT(told_of_items(runtime, "+item", ""), ElementsAre("1+item", "2+item", "1-item 2"));
}

TEST(Hooks, ThatAreLeftAfterOneHasThrownSeeItsException) {
  runtime runtime({.threads = 1});
  EXPECT_THAT(told_of_items(runtime, "", "-item"),
              ElementsAre("1+item", "2+item", "3+item", "3-item", "2-item 3", "1-item 3"));
  EXPECT_THAT(told_of_items(runtime, "-item", "-item"),
              ElementsAre("1+item", "2+item", "3+item", "3-item", "2-item 3", "1-item 3"));
}

TEST(Hooks, DoNotReplaceTheFailureOfTheFunction) {
  runtime runtime({.threads = 1});
  EXPECT_THAT(told_of_items(runtime, "-item", "", 2),
              ElementsAre("1+item", "2+item", "3+item", "3-item two", "2-item two", "1-item two"));
}

TEST(Hooks, OfAStageThatThrowOnEntryAreNotLeftAndThoseBehindAreNotEntered) {
  runtime runtime({.threads = 1});
  numbered::lines recorded;
  numbered first(1, recorded), second(2, recorded, "+source"), third(3, recorded);
  EXPECT_THAT([&] { collect(runtime, from(numbers{-1}), {.hooks = {&first, &second, &third}}); },
              ThrowsMessage<std::domain_error>("2"));
  EXPECT_THAT(recorded, ElementsAre("1+source", "2+source", "1-source"));
}

TEST(Hooks, OfAStageAreAllLeftAlsoWhereOneThrows) {
  runtime runtime({.threads = 1});
  numbered::lines recorded;
  numbered first(1, recorded), second(2, recorded), third(3, recorded, "-source");
  EXPECT_THAT([&] { collect(runtime, from(numbers{3}), {.hooks = {&first, &second, &third}}); },
              ThrowsMessage<std::domain_error>("3"));
  EXPECT_THAT(recorded,
              ElementsAre("1+source", "2+source", "3+source", "3-source", "2-source", "1-source"));
}

// Throws at random. Checks that each call and each stage that was entered is left once, and in the
// reverse order.
class random_hooks : public run_hooks {
 public:
  random_hooks(std::uint64_t seed, int depth) : draw_(seed, depth), depth_(depth) {}
  ~random_hooks() override {
    EXPECT_EQ(items_, 0);
    EXPECT_EQ(stages_, 0);
  }

 private:
  void enter_stage(std::string_view) override { ++stages_; }
  void leave_stage(std::string_view, const std::exception_ptr&) override { --stages_; }
  void enter_item(const item_call& call) override {
    EXPECT_FALSE(call.local.has_value());
    throw_sometimes();
    call.local = std::pair(depth_, call.attempt);
    ++items_;
  }
  void leave_item(const item_call& call, const std::exception_ptr&) override {
    EXPECT_EQ((std::any_cast<std::pair<int, unsigned>>(call.local)),
              std::pair(depth_, call.attempt));
    --items_;
    throw_sometimes();
  }
  void throw_sometimes() {
    std::lock_guard lock(mutex_);
    if (draw_.below(20) == 0) throw std::runtime_error("hook");
  }

  std::mutex mutex_;
  random draw_;
  int depth_;
  std::atomic<int> items_ = 0;
  std::atomic<int> stages_ = 0;
};

static task<int> same_later(int i) { co_return i; }

// Takes two items at a time.
struct same_twos {
  static constexpr unsigned items_at_a_time = 2;
  int operator()(int i) const { return i; }
  void operator()(waiting_items<int, int>& waiting) const {
    std::vector<taken_item<int, int>> taken;
    while (auto next = waiting.next()) taken.push_back(std::move(*next));
    for (auto& each : taken) each.give(*each);
  }
};

TEST(Hooks, ThatAreEnteredAreLeftOnceWhateverHappens) {
  const auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  runtime runtime({.threads = 3});
  for (std::uint64_t round = 0; round < 60; ++round) {
    random draw(seed, round);
    auto how = [&] {
      return map_options{.concurrency = static_cast<unsigned>(1 + draw.below(4)),
                         .retry = {.attempts = static_cast<unsigned>(1 + draw.below(3)),
                                   .pause = std::chrono::microseconds(1)}};
    };
    auto parts = flat_map([](int i) { return std::vector<int>{i, i}; },
                          {.concurrency = static_cast<unsigned>(1 + draw.below(3))});
    auto items = from(numbers{300}) | map([](int i) { return i; }, how()) | map(same_later, how()) |
                 parts | map(same_twos(), how());
    random_hooks first(seed + round, 1), second(seed + round, 2);
    auto run = runtime.run(items, {.on_error = draw.below(4) == 0 ? on_error::fail : on_error::skip,
                                   .hooks = {&first, &second}});
    auto wanted = draw.below(700);
    try {
      for (std::uint64_t taken = 0; taken < wanted && run.wait_next(); ++taken) {}
      if (draw.below(2) == 0) run.stop();
    } catch (const stage_error&) {}
  }
}

TEST(Hooks, ThatThrowDoNotBlockTheDestructionOfARun) {
  runtime runtime({.threads = 2});
  for (int round = 0; round < 50; ++round)
    for (auto where : {throwing::enters_stage, throwing::leaves_stage, throwing::enters_item,
                       throwing::leaves_item}) {
      throwing hooks(where);
      auto items = runtime.run(from(numbers{-1}) | map([](int i) { return i; }) | prefetch(2),
                               {.hooks = &hooks});
      test::pause(round);
    }
}

}  // namespace lade::hooks_test
