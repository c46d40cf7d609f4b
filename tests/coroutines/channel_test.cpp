#include <lade/channel.hpp>
#include <lade/error.hpp>
#include <lade/scope.hpp>
#include <lade/sync_wait.hpp>
#include <lade/thread_pool.hpp>
#include <lade/when_all.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "../support/coroutines.hpp"

namespace lade::channel_test {

using testing::ElementsAre;
using testing_support::code_of;
using testing_support::counted;
using testing_support::in;
using testing_support::stopped_by;

static task<> join(scope& children) { co_await children.join(); }

static task<> push(channel<int>& to, int value) { co_await to.push(value); }

static task<> push_range(channel<int>& to, int first, int end) {
  for (int i = first; i < end; ++i) co_await to.push(i);
}

static task<std::optional<int>> pop(channel<int>& from) { co_return co_await from.pop(); }

static task<> pop_into(channel<int>& from, std::vector<int>& values) {
  while (auto value = co_await from.pop()) values.push_back(*value);
}

TEST(Channel, DeliversValuesInOrder) {
  channel<int> places(3);
  sync_wait(push_range(places, 0, 3));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(sync_wait(pop(places)), i);
}

TEST(Channel, BlocksItsProducerWhileItIsFull) {
  channel<int> places(2);
  scope children;
  children.start(push_range(places, 0, 5));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sync_wait(pop(places)), i);
  sync_wait(join(children));
}

TEST(Channel, ProducersThatWaitKeepTheirOrder) {
  channel<int> places(1);
  scope children;
  for (int i = 0; i < 4; ++i) children.start(push(places, i));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(sync_wait(pop(places)), i);
  sync_wait(join(children));
}

TEST(Channel, DeliversToAWaitingConsumer) {
  channel<int> places(1);
  std::vector<int> values;
  scope children;
  children.start(pop_into(places, values));
  sync_wait(push_range(places, 0, 5));
  EXPECT_THAT(values, ElementsAre(0, 1, 2, 3, 4));
  places.close();
  sync_wait(join(children));
}

TEST(Channel, ItsProducersWaitUntilItIsHalfEmpty) {
  channel<int> places(4);
  std::atomic<int> pushed = 0;
  auto push_more = [](channel<int>& to, int first, int end, std::atomic<int>& count) -> task<> {
    for (int i = first; i < end; ++i, ++count) co_await to.push(i);
  };
  scope children;
  children.start(push_more(places, 0, 8, pushed));
  EXPECT_EQ(pushed, 4);
  EXPECT_EQ(sync_wait(pop(places)), 0);
  EXPECT_EQ(pushed, 4);
  children.start(push_more(places, 8, 9, pushed));  // there is room, but another came first
  EXPECT_EQ(pushed, 4);
  EXPECT_EQ(sync_wait(pop(places)), 1);
  EXPECT_EQ(pushed, 6);
  std::vector<int> values;
  for (int i = 2; i < 9; ++i) values.push_back(*sync_wait(pop(places)));
  EXPECT_THAT(values, ElementsAre(2, 3, 4, 8, 5, 6, 7));
  sync_wait(join(children));
}

static task<> push_when_wanted(channel<int>& to, int value) {
  co_await to.wanted();
  co_await to.push(value);
}

TEST(Channel, AWaitingConsumerEndsTheWaitForDemand) {
  channel<int> places(2);
  scope children;
  children.start(push_when_wanted(places, 2));
  sync_wait(push(places, 1));
  EXPECT_EQ(sync_wait(pop(places)), 1);
  EXPECT_EQ(sync_wait(pop(places)), 2);  // waits, and is served
  sync_wait(join(children));
}

TEST(Channel, ACloseEndsTheWaitForDemand) {
  channel<int> places(2);
  scope children;
  children.start(push_when_wanted(places, 1));
  places.close();
  EXPECT_EQ(code_of([&] { sync_wait(join(children)); }), errc::closed);
}

TEST(Channel, AStopEndsTheWaitForDemand) {
  channel<int> places(2);
  std::stop_source source;
  scope children;
  children.start(in(stopped_by(source), push_when_wanted(places, 1)));
  source.request_stop();
  EXPECT_EQ(code_of([&] { sync_wait(join(children)); }), errc::stopped);
}

TEST(Channel, SizeIsTheNumberOfQueuedValues) {
  channel<int> places(2);
  EXPECT_EQ(places.size(), 0u);
  sync_wait(push(places, 1));
  sync_wait(push(places, 2));
  EXPECT_EQ(places.size(), 2u);
  sync_wait(pop(places));
  EXPECT_EQ(places.size(), 1u);
}

TEST(Channel, TryPopDoesNotWait) {
  channel<int> places(2);
  EXPECT_EQ(places.try_pop(), std::nullopt);
  scope children;
  children.start(push_range(places, 0, 3));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(places.try_pop(), i);  // its producer takes the free place
  EXPECT_EQ(places.try_pop(), std::nullopt);
  sync_wait(join(children));
  places.close();
  EXPECT_EQ(places.try_pop(), std::nullopt);
}

TEST(Channel, HasAtLeastOneSlot) {
  channel<int> places(0);
  sync_wait(push(places, 1));
  EXPECT_EQ(sync_wait(pop(places)), 1);
}

TEST(Channel, DeliversQueuedValuesAfterAClose) {
  channel<int> places(4);
  sync_wait(push_range(places, 0, 2));
  places.close();
  EXPECT_EQ(sync_wait(pop(places)), 0);
  EXPECT_EQ(sync_wait(pop(places)), 1);
  EXPECT_EQ(sync_wait(pop(places)), std::nullopt);
  EXPECT_EQ(sync_wait(pop(places)), std::nullopt);
}

TEST(Channel, RefusesValuesAfterAClose) {
  channel<int> places(4);
  places.close();
  places.close();
  EXPECT_EQ(code_of([&] { sync_wait(push(places, 1)); }), errc::closed);
  EXPECT_EQ(sync_wait(pop(places)), std::nullopt);
}

TEST(Channel, ACloseWakesAllWaiters) {
  std::vector<int> values;
  channel<int> empty(1);
  scope consumers;
  for (int i = 0; i < 3; ++i) consumers.start(pop_into(empty, values));
  empty.close();
  sync_wait(join(consumers));

  channel<int> full(1);
  std::atomic<int> refused = 0;
  auto try_push = [](channel<int>& to, int value, std::atomic<int>& count) -> task<> {
    try {
      co_await to.push(value);
    } catch (const error& failure) {
      count += failure.code() == errc::closed;
    }
  };
  scope producers;
  for (int i = 0; i < 4; ++i) producers.start(try_push(full, i, refused));
  full.close();
  sync_wait(join(producers));
  EXPECT_EQ(refused, 3);
  EXPECT_EQ(sync_wait(pop(full)), 0);
  EXPECT_EQ(sync_wait(pop(full)), std::nullopt);
}

static task<> push_counted(channel<counted>& to, int n) {
  for (int i = 0; i < n; ++i) {
    co_await to.push(counted(i));
    counted named(i);
    co_await to.push(named);
    co_await to.push(std::move(named));
  }
  to.close();
}

static task<> add_counted(channel<counted>& from, int& sum) {
  while (auto value = co_await from.pop()) sum += value->value();
}

static task<int> pass_counted(std::size_t places_wanted) {
  channel<counted> places(places_wanted);
  int sum = 0;
  co_await when_all(push_counted(places, 5), add_counted(places, sum));
  co_return sum;
}

TEST(Channel, DestroysEveryValueOnce) {
  counted::check check;
  for (std::size_t places : {1u, 2u, 64u}) EXPECT_EQ(sync_wait(pass_counted(places)), 3 * 10);
  channel<counted> left(20);
  sync_wait(push_counted(left, 5));
}

struct owner {
  explicit owner(std::string text) : name(std::move(text)), number(std::make_unique<int>(1)) {}
  std::string name;
  std::unique_ptr<int> number;
};

static task<std::string> pass_owner() {
  channel<owner> places(1);
  co_await places.push(owner("a name that is too long for the string itself"));
  auto out = co_await places.pop();
  co_return out->name + std::to_string(*out->number);
}

TEST(Channel, DeliversMoveOnlyValues) {
  EXPECT_EQ(sync_wait(pass_owner()), "a name that is too long for the string itself1");
}

TEST(Channel, AStopEndsPushesAndPops) {
  counted::check check;
  channel<counted> full(1);
  channel<int> empty(1);
  std::stop_source source;
  auto push_two = [](channel<counted>& to) -> task<> {
    co_await to.push(counted(1));
    co_await to.push(counted(2));
  };
  scope pushing, popping;
  std::vector<int> values;
  pushing.start(in(stopped_by(source), push_two(full)));
  popping.start(in(stopped_by(source), pop_into(empty, values)));
  source.request_stop();
  EXPECT_EQ(code_of([&] { sync_wait(join(pushing)); }), errc::stopped);
  EXPECT_EQ(code_of([&] { sync_wait(join(popping)); }), errc::stopped);
  sync_wait(push(empty, 3));
  EXPECT_EQ(sync_wait(pop(empty)), 3);
}

static task<> pop_or_stop(channel<counted>& from, std::atomic<int>& received) {
  try {
    auto value = co_await from.pop();
    received += value.has_value();
  } catch (const error&) {}
}

static task<> push_one(channel<counted>& to, int value) { co_await to.push(counted(value)); }

TEST(Channel, AStopThatRacesWithAPushLosesNoValue) {
  counted::check check;
  constexpr int rounds = 2000;
  channel<counted> places(rounds);
  std::atomic<int> received = 0;
  std::vector<std::stop_source> sources(rounds);
  scope children;
  for (auto& source : sources)
    children.start(in(stopped_by(source), pop_or_stop(places, received)));
  testing_support::race(
      rounds, [&](int i) { sync_wait(push_one(places, i)); },
      [&](int i) { sources[static_cast<std::size_t>(i)].request_stop(); });
  sync_wait(join(children));
  places.close();
  int left = 0;
  sync_wait([](channel<counted>& from, int& count) -> task<> {
    while (co_await from.pop()) ++count;
  }(places, left));
  EXPECT_EQ(received + left, rounds);
}

static task<> push_or_stop(channel<counted>& to, int value, std::atomic<int>& pushed) {
  try {
    co_await to.push(counted(value));
    ++pushed;
  } catch (const error&) {}
}

TEST(Channel, AStopThatRacesWithAPopLosesNoValue) {
  counted::check check;
  constexpr int rounds = 2000;
  channel<counted> places(1);
  std::atomic<int> pushed = 0, received = 0;
  std::vector<std::stop_source> sources(rounds);
  scope children;
  for (int i = 0; i < rounds; ++i)
    children.start(
        in(stopped_by(sources[static_cast<std::size_t>(i)]), push_or_stop(places, i, pushed)));
  auto pop_one = [](channel<counted>& from, std::atomic<int>& count) -> task<> {
    auto value = co_await from.pop();
    count += value.has_value();
  };
  testing_support::race(
      rounds,
      [&](int i) {
        if (i == rounds - 1) places.close();
        sync_wait(pop_one(places, received));
      },
      [&](int i) { sources[static_cast<std::size_t>(i)].request_stop(); });
  sync_wait(join(children));
  while (auto before = received.load()) {
    sync_wait(pop_one(places, received));
    if (received == before) break;
  }
  EXPECT_EQ(pushed, received);
}

static task<> add_up(channel<int>& from, std::atomic<long>& sum) {
  while (auto value = co_await from.pop()) sum += *value;
}

TEST(Channel, ManyProducersAndConsumersShareIt) {
  thread_pool pool({.threads = 3});
  channel<int> places(4);
  std::atomic<long> sum = 0;
  scope producers(testing_support::at(pool)), consumers(testing_support::at(pool));
  for (int i = 0; i < 4; ++i) {
    producers.start(push_range(places, 0, 1000));
    consumers.start(add_up(places, sum));
  }
  sync_wait(join(producers));
  places.close();
  sync_wait(join(consumers));
  EXPECT_EQ(sum, 4 * 499'500);
}

TEST(Channel, ACloseMayRaceWithPushesAndPops) {
  thread_pool pool({.threads = 2});
  for (int i = 0; i < 500; ++i) {
    channel<int> places(1);
    std::atomic<long> sum = 0;
    scope children(testing_support::at(pool));
    auto push_all = [](channel<int>& to) -> task<> {
      try {
        while (true) co_await to.push(1);
      } catch (const error& failure) {
        EXPECT_EQ(failure.code(), errc::closed);
      }
    };
    children.start(push_all(places));
    children.start(add_up(places, sum));
    places.close();
    sync_wait(join(children));
  }
}

static task<> pop_nothing(channel<int>& from) { (void)co_await from.pop(); }

TEST(ChannelDeathTest, DestructionWithWaitersEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto destroy = [] {
    scope waiting;
    auto places = std::make_unique<channel<int>>(1);
    waiting.start(pop_nothing(*places));
    places.reset();
  };
  EXPECT_DEATH(destroy(), "lade: a channel was destroyed while coroutines wait in it");
}

}  // namespace lade::channel_test
