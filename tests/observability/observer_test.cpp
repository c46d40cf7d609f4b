#include <lade/batch_by.hpp>
#include <lade/event.hpp>
#include <lade/filter.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/sleep.hpp>
#include <lade/task.hpp>

#include "../support/caught_errors.hpp"
#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace lade::observer_test {

using namespace std::chrono_literals;
using test::collect;
using test::numbers;
using test::up_to;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing::ThrowsMessage;

TEST(Report, IsSentDuringTheRunAndOnceAtItsEnd) {
  runtime runtime({.threads = 2});
  std::atomic<int> reports = 0;
  std::vector<run_report> received;
  auto note = [&](const run_report& report) {
    received.push_back(report);
    ++reports;
  };
  auto items = runtime.run(from(up_to(100)) | map([](int i) { return i; }, {.concurrency = 2}),
                           {.report = {.every = 1ms, .to = note}});
  test::wait_until([&] { return reports >= 3; });
  collect(items);
  run_statistics last = items.statistics();
  EXPECT_EQ(received.back().total.delivered, 100u);
  std::uint64_t delivered = 0;
  std::uint64_t calls = 0;
  std::chrono::nanoseconds elapsed{};
  for (auto& report : received) {
    delivered += report.interval.delivered;
    elapsed += report.interval.elapsed;
    if (!report.interval.stages.empty()) calls += report.interval.stages.back().durations.total();
  }
  EXPECT_EQ(delivered, 100u);
  EXPECT_EQ(calls, 100u);
  EXPECT_EQ(elapsed, received.back().total.elapsed);
  EXPECT_EQ(last.stages.back().slots, 4u);
  EXPECT_EQ(last.elapsed, received.back().total.elapsed) << "until the run had ended";
  EXPECT_EQ(std::ranges::count(received, true, &run_report::last), 1);
  EXPECT_TRUE(received.back().last);
  EXPECT_TRUE(received.back().process.cpu_user);
}

TEST(Report, HasTheProportionalMemoryIfAsked) {
  runtime runtime({.threads = 2});
  std::vector<run_report> received;
  auto note = [&](const run_report& report) { received.push_back(report); };
  for (bool pss : {false, true}) {
    auto items = runtime.run(from(up_to(2)), {.report = {.to = note, .pss = pss}});
    collect(items);
  }
  ASSERT_EQ(received.size(), 2u);
  EXPECT_FALSE(received[0].process.pss_bytes);
  if (!read_process_statistics({.pss = true}).pss_bytes) GTEST_SKIP() << "no smaps_rollup";
  EXPECT_GT(received[1].process.pss_bytes.value_or(0), 0u);
}

TEST(Report, IsSentAtTheEndOfARunThatFails) {
  runtime runtime({.threads = 2});
  std::vector<run_report> received;
  auto note = [&](const run_report& report) { received.push_back(report); };
  auto items = runtime.run(from(up_to(2)) | map([](int i) { return i == 0 ? i : throw 1; }),
                           {.report = {.to = note}});
  EXPECT_THROW(collect(items), stage_error);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].total.delivered, 1u);
  EXPECT_EQ(received[0].total.stages.back().failed, 1u);
}

TEST(Report, IsSentAtTheEndOfARunThatIsDestroyedEarly) {
  runtime runtime({.threads = 2});
  std::vector<run_report> received;
  auto note = [&](const run_report& report) { received.push_back(report); };
  {
    auto items = runtime.run(from(numbers{-1}), {.report = {.to = note}});
    items.wait_next();
  }
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].total.delivered, 1u);
}

TEST(Report, WhatItsFunctionThrowsEndsTheRun) {
  runtime runtime({.threads = 2});
  auto refuse = [](const run_report&) { throw std::runtime_error("no space on the wall"); };
  auto items = runtime.run(from(numbers{-1}), {.report = {.every = 1ms, .to = refuse}});
  EXPECT_THAT([&] { collect(items); }, ThrowsMessage<std::runtime_error>("no space on the wall"));
  EXPECT_FALSE(items.wait_next());
}

TEST(Report, WhatItsFunctionThrowsAtTheVeryEndIsThrownToo) {
  runtime runtime({.threads = 2});
  auto refuse = [](const run_report&) { throw std::runtime_error("late"); };
  auto items = runtime.run(from(up_to(3)), {.report = {.to = refuse}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(items.wait_next(), i);
  EXPECT_THAT([&] { items.wait_next(); }, ThrowsMessage<std::runtime_error>("late"));
}

// The texts that a run has reported, from any thread.
class received_texts {
 public:
  void add(const std::string& text) {
    std::lock_guard lock(mutex_);
    texts_.push_back(text);
  }
  std::vector<std::string> all() const {
    std::lock_guard lock(mutex_);
    return texts_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> texts_;
};

TEST(Stall, IsReportedOnceWithTheStateOfEachItem) {
  runtime runtime({.threads = 2});  // one for the call that hangs
  test::gate gate;
  received_texts received;
  auto note = [&](const std::string& text) { received.add(text); };
  auto hang = [&](std::string key) {
    if (key == "b") gate.pass();
    return key;
  };
  auto wait = [](std::string key) -> task<std::string> { co_return key; };
  std::vector<std::string> keys{"a", "b", "c", "d"};
  auto stages = from(keys) | map(wait, {.concurrency = 2, .name = "fetch"}) |
                map(hang, {.concurrency = 2, .name = "hang"});
  auto items = runtime.run(stages, {.stall = {.after = 8ms, .to = note}});
  EXPECT_EQ(items.wait_next(), "a");
  gate.wait_for(1);
  auto before = received.all().size();  // a busy machine may have taken its time for the first item
  std::vector<std::string> texts;
  std::size_t later = 0;
  std::thread opener([&] {
    auto wait_for = [&](std::chrono::nanoseconds time) {
      auto start = items.statistics().consumer_wait;
      test::wait_until([&] { return items.statistics().consumer_wait > start + time; });
    };
    test::wait_until([&] { return received.all().size() > before; });
    wait_for(20ms);
    texts = received.all();
    wait_for(20ms);
    later = received.all().size();
    gate.open();
  });
  EXPECT_EQ(collect(items).size(), 3u);
  opener.join();
  EXPECT_EQ(later, texts.size());
  EXPECT_THAT(texts.back(), StartsWith("lade: the consumer has waited for an item for "));
  EXPECT_THAT(texts.back(), HasSubstr("s.\nstage "));
  EXPECT_THAT(texts.back(), HasSubstr("\nMemory: 0 of "));
  EXPECT_THAT(texts.back(), HasSubstr("\nhang: "));
  EXPECT_THAT(texts.back(), HasSubstr("\n  item 1 (b) has been worked on for "));
}

// The report of a run whose consumer waits while a function hangs at the gate.
template <class T>
static std::string stall_of(const pipeline<T>& what, test::gate& gate) {
  runtime runtime({.threads = 2});
  received_texts received;
  auto note = [&](const std::string& text) { received.add(text); };
  auto items = runtime.run(what, {.stall = {.after = 4ms, .to = note}});
  gate.wait_for(1);
  std::thread consumer([&] { collect(items); });
  test::wait_until([&] { return !received.all().empty(); });
  gate.open();
  consumer.join();
  return received.all().front();
}

// Batches of one item, if the gate is passed.
class held_batches {
 public:
  explicit held_batches(test::gate& gate) : gate_(gate) {}
  std::optional<int> add(int item) {
    gate_.pass();
    return item;
  }
  std::optional<int> flush() { return std::nullopt; }

 private:
  test::gate& gate_;
};

TEST(Stall, NamesTheItemThatAnInlineStageHangsAt) {
  auto hangs = [](auto make) {
    test::gate gate;
    EXPECT_THAT(stall_of(from(up_to(2)) | make(gate), gate),
                HasSubstr("\nhang: runs inline\n  item 0 (0) has been worked on for "));
  };
  hangs([](test::gate& gate) {
    return map([&](int i) { return gate.pass(), i; }, {.concurrency = 1, .name = "hang"});
  });
  hangs([](test::gate& gate) {
    return filter([&](int) { return gate.pass(), true; }, {.name = "hang"});
  });
  hangs([](test::gate& gate) {
    return flat_map([&](int i) { return gate.pass(), std::vector{i}; }, {.name = "hang"});
  });
  hangs([](test::gate& gate) { return batch_by(held_batches(gate), {.name = "hang"}); });
}

TEST(Stall, SaysThatAnInlineStageIsNotCalled) {
  test::gate gate;
  auto hang = [&](int i) { return gate.pass(), i; };
  auto fine = map([](int i) { return i; }, {.concurrency = 1, .name = "fine"});
  EXPECT_THAT(stall_of(from(up_to(2)) | fine | map(hang, {.name = "hang"}) | fine, gate),
              HasSubstr("\nfine (2): runs inline, and is not called now\n"));
}

TEST(Stall, ReportsPartsThatWaitForThoseOfEarlierItems) {
  runtime runtime({.threads = 3});
  test::gate gate;
  received_texts received;
  auto note = [&](const std::string& text) { received.add(text); };
  auto thrice = [&](int i) {
    if (i == 0) gate.pass();
    return std::vector{i, i, i};
  };
  auto stages =
      from(up_to(2)) | flat_map(thrice, {.concurrency = 2, .buffer = 1, .name = "thrice"});
  auto items = runtime.run(stages, {.stall = {.after = 4ms, .to = note}});
  auto parts_made = [&] { return items.statistics().stages.back().durations.total(); };
  test::wait_until([&] { return items.statistics().stages.size() == 2 && parts_made() == 2; });
  std::thread consumer([&] { EXPECT_EQ(collect(items).size(), 6u); });
  test::wait_until([&] { return !received.all().empty(); });
  gate.open();
  consumer.join();
  EXPECT_THAT(received.all().front(), HasSubstr("\n  item 0 (0) has been worked on for "));
  EXPECT_THAT(received.all().front(),
              HasSubstr("\n  item 1 (1) has a part that waits for earlier"));
}

// A task for each item: the first is not done before `release`, the second fails, the third is
// done. On the thread of the reactor, as the reports of stalls.
class unlike_tasks {
 public:
  explicit unlike_tasks(event& release) noexcept : release_(release) {}
  bool first_has_started() const noexcept { return started_; }

  task<int> call(int i) {
    if (i == 1) throw std::runtime_error("not yet");
    if (i == 2) co_return i;
    started_ = true;
    co_await release_;
    co_return i;
  }

 private:
  event& release_;
  std::atomic<bool> started_ = false;
};

TEST(Stall, ReportsItemsThatPauseAndThatAreDone) {
  runtime runtime({.threads = 2});
  event release;
  unlike_tasks tasks(release);
  received_texts received;
  auto note = [&](const std::string& text) {
    received.add(text);
    release.set();
  };
  auto fetch = map([&](int i) { return tasks.call(i); },
                   {.concurrency = 3, .retry = {.attempts = 2, .pause = 10min}, .name = "fetch"});
  auto items = runtime.run(from(up_to(3)) | fetch, {.stall = {.after = 4ms, .to = note}});
  test::wait_until([&] {
    auto stages = items.statistics().stages;
    return tasks.first_has_started() && stages.back().durations.total() == 2;
  });
  EXPECT_EQ(items.wait_next(), 0);
  EXPECT_THAT(received.all().at(0), HasSubstr("\n  item 0 (0) has been worked on for "));
  EXPECT_THAT(received.all().at(0),
              HasSubstr("\n  item 1 (1) has paused before another call for "));
  EXPECT_THAT(received.all().at(0), HasSubstr("\n  item 2 (2) is done and waits for earlier ones"));
}

TEST(Stall, IsWrittenToStandardErrorByDefault) {
  runtime runtime({.threads = 2});
  test::gate gate;
  auto hang = [&](int i) {
    gate.pass();
    return i;
  };
  std::string text;
  {
    testing_support::caught_errors errors;
    auto items =
        runtime.run(from(up_to(3)) | map(hang, {.name = "hang"}), {.stall = {.after = 4ms}});
    gate.wait_for(1);
    std::thread consumer([&] { EXPECT_EQ(collect(items), up_to(3)); });
    test::wait_until([&] { return errors.text().find("\nhang: ") != std::string::npos; });
    text = errors.text();
    gate.open();
    consumer.join();
  }
  EXPECT_THAT(text, StartsWith("lade: the consumer has waited for an item for "));
  EXPECT_THAT(text, HasSubstr("\nMemory: 0 of "));
}

TEST(Stall, IsReportedAgainAfterAnItem) {
  runtime runtime({.threads = 2});
  std::atomic<int> received = 0;
  auto note = [&](const std::string&) { ++received; };
  auto hang = [&](int i) {
    test::wait_until([&] { return received > i; });
    return i;
  };
  auto items = runtime.run(from(up_to(3)) | map(hang, {.concurrency = 2}),
                           {.stall = {.after = 4ms, .to = note}});
  EXPECT_EQ(collect(items), up_to(3));
  EXPECT_GE(received, 3);
}

// The number of stalls reported while the consumer has the first item. Empty if the machine delayed
// that item for as long as a stall takes.
static std::optional<int> stalls_beside_an_item(runtime& where) {
  const auto after = 5ms;
  std::atomic<int> received = 0;
  auto note = [&](const std::string&) { ++received; };
  auto before = std::chrono::steady_clock::now();
  auto items = where.run(from(up_to(3)), {.stall = {.after = after, .to = note}});
  items.wait_next();
  if (std::chrono::steady_clock::now() - before >= after) return std::nullopt;
  auto start = items.statistics().elapsed;
  test::wait_until([&] { return items.statistics().elapsed > start + 4 * after; });
  return received;
}

TEST(Stall, IsNotReportedWhileTheConsumerDoesNotWait) {
  runtime runtime({.threads = 2});
  auto received = stalls_beside_an_item(runtime);
  while (!received) received = stalls_beside_an_item(runtime);
  EXPECT_EQ(received, 0);
}

// A task that blocks the reactor until it has been named.
TEST(Watchdog, NamesAStageThatBlocksAReactor) {
  runtime runtime({.threads = 1});
  test::gate gate;
  received_texts received;
  auto note = [&](const std::string& text) {
    received.add(text);
    gate.open();
  };
  auto block = [&](int i) -> task<int> {
    gate.pass();
    co_return i;
  };
  auto items = runtime.run(from(up_to(3)) | map(block, {.name = "fetch"}), {.stall = {.to = note}});
  EXPECT_EQ(collect(items), up_to(3));
  ASSERT_EQ(received.all().size(), 1u);
  EXPECT_THAT(received.all()[0], StartsWith("lade: stage fetch has blocked a reactor for "));
  EXPECT_THAT(received.all()[0], HasSubstr(" ms, in its function. "));
}

// By computing: what other threads of the machine take does not count.
static task<int> block_for_long(int i) {
  auto computed = [] { return std::chrono::nanoseconds(detail::thread_usage::now(false).cpu); };
  auto end = computed() + 3 * detail::activity::allowed;
  while (computed() < end) {}
  co_return i;
}

TEST(Watchdog, NamesAStageOfARunThatIsOverBeforeItLooks) {
  runtime runtime({.threads = 1, .reactors = 1});
  received_texts received;
  auto note = [&](const std::string& text) { received.add(text); };
  for (std::size_t runs = 1; runs <= 3; ++runs) {
    collect(runtime, from(up_to(1)) | map(block_for_long, {.name = "blocker"}),
            {.stall = {.to = note}});
    ASSERT_EQ(received.all().size(), runs);
    EXPECT_THAT(received.all().back(),
                StartsWith("lade: stage blocker has blocked a reactor for "));
  }
}

// Its counters may lie where those of the run before did.
TEST(Watchdog, BlamesNoStageForABlockInAnEarlierRun) {
  runtime runtime({.threads = 1, .reactors = 1});
  for (int i = 0; i < 3; ++i) {
    collect(runtime, from(up_to(1)) | map(block_for_long), {.stall = {.to = [](auto&) {}}});
    event looked_at;
    received_texts received;
    auto note = [&](const std::string& text) {
      received.add(text);
      if (text.starts_with("lade: the consumer has waited")) looked_at.set();
    };
    auto wait = [&](int item) -> task<int> {
      co_await looked_at;
      co_return item;
    };
    collect(runtime, from(up_to(1)) | map(wait), {.stall = {.after = 1ms, .to = note}});
    EXPECT_THAT(received.all(), Not(Contains(HasSubstr("has blocked a reactor"))));
  }
}

// Counts its looks at a blocked reactor.
class counted_looks final : private detail::watched {
 public:
  explicit counted_looks(detail::watchdog& dog) : dog_(dog) { dog_.add(*this); }
  counted_looks(const counted_looks&) = delete;
  ~counted_looks() { (void)dog_.remove(*this); }

  void wait_for(int more) {
    for (auto last = blocked_ + more; blocked_ < last;) blocked_.wait(blocked_);
  }

 private:
  std::chrono::nanoseconds interval() const noexcept override { return 1ms; }
  void look(std::span<const detail::activity::step> blocking) noexcept override {
    if (blocking.empty()) return;
    ++blocked_;
    blocked_.notify_all();
  }

  detail::watchdog& dog_;
  std::atomic<int> blocked_ = 0;
};

TEST(Watchdog, NamesAStageOnceHoweverOftenItBlocks) {
  runtime runtime({.threads = 1});
  counted_looks looks(runtime.watchdog());
  received_texts received;
  auto note = [&](const std::string& text) { received.add(text); };
  auto block = [&](int i) -> task<int> {
    looks.wait_for(4);  // of which the run has made three at least
    co_return i;
  };
  auto items = runtime.run(from(up_to(2)) | map(block, {.name = "fetch"}), {.stall = {.to = note}});
  EXPECT_EQ(collect(items), up_to(2));
  EXPECT_EQ(received.all().size(), 1u);
}

TEST(Watchdog, NamesWhatAStageWasDoing) {
  runtime runtime({.threads = 1});
  test::gate gate;
  received_texts received;
  auto note = [&](const std::string& text) {
    received.add(text);
    gate.open();
  };
  auto block = [&](int i) -> task<int> {
    co_await sleep(1us);
    gate.pass();
    co_return i;
  };
  auto items = runtime.run(from(up_to(3)) | map(block, {.name = "fetch"}), {.stall = {.to = note}});
  EXPECT_EQ(collect(items), up_to(3));
  EXPECT_THAT(received.all().at(0), HasSubstr(" ms, after a sleep. "));
}

TEST(Watchdog, ReportsAStallWhileTheReactorIsBlocked) {
  runtime runtime({.threads = 1});
  test::gate gate;
  received_texts received;
  auto note = [&](const std::string& text) {
    received.add(text);
    if (text.starts_with("lade: the consumer has waited")) gate.open();
  };
  auto block = [&](int i) -> task<int> {
    gate.pass();
    co_return i;
  };
  auto items = runtime.run(from(up_to(3)) | map(block), {.stall = {.after = 4ms, .to = note}});
  EXPECT_EQ(collect(items), up_to(3));
}

// The reactor wakes the pool's thread for the first item after the steps of its turn. The second
// step never ends.
TEST(Watchdog, WakesTheThreadsThatABlockedReactorWouldWake) {
  runtime runtime({.threads = 1, .reactors = 1});
  test::gate first_is_there;
  bool first_has_run = false;  // known to the one reactor, whose workers may begin in any order
  auto wait_for_first = [&](int i) -> task<int> {
    if (i == 0) first_has_run = true;
    while (!first_has_run) co_await sleep(1ns);
    if (i > 0) first_is_there.pass();
    co_return i;
  };
  auto items = runtime.run(from(up_to(2)) | map(wait_for_first), {.ready = 1});
  EXPECT_EQ(items.wait_next(), std::optional(0));
  first_is_there.open();
  EXPECT_EQ(items.wait_next(), std::optional(1));
}

TEST(Stall, WhatItsFunctionThrowsEndsTheRun) {
  runtime runtime({.threads = 2});
  auto hang = [](int i) -> task<int> {
    co_await sleep(1h);
    co_return i;
  };
  auto give_up = [](const std::string&) { throw std::runtime_error("no more patience"); };
  auto items = runtime.run(from(up_to(3)) | map(hang), {.stall = {.after = 1ms, .to = give_up}});
  EXPECT_THAT([&] { items.wait_next(); }, ThrowsMessage<std::runtime_error>("no more patience"));
}

}  // namespace lade::observer_test
