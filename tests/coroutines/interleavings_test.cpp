// Every order in which threads meet in the primitives of coroutines: where they park, wake, close
// and stop. The primitives are compiled with the mutex and the atomics of support/interleaved.

#include <lade/async_generator.hpp>
#include <lade/channel.hpp>
#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/promise.hpp>
#include <lade/scope.hpp>
#include <lade/semaphore.hpp>
#include <lade/task.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "../support/coroutines.hpp"
#include "../support/interleavings.hpp"
#include "../support/started.hpp"

namespace lade {

using test::in_all_orders;
using test::in_all_orders_of_atomics;
using test::interleaving;
using test::started;
using testing_support::counted;

static task<> watch(channel<counted>& watched) { co_await watched.wanted(); }

static task<> push(channel<counted>& to, int value) { co_await to.push(counted(value)); }

static task<> push_two(channel<counted>& to) {
  co_await to.push(counted(1));
  co_await to.push(counted(2));
}

static task<> pop(channel<counted>& from, std::vector<int>& values) {
  auto value = co_await from.pop();
  if (value) values.push_back(value->value());
}

static task<> acquire(semaphore& from) { co_await from.acquire(); }

static task<> wait_for(event& awaited) { co_await awaited; }

static task<> fail() {
  throw error(errc::failed, "fail");
  co_return;
}

TEST(Interleavings, DemandWakesAllWaitingProducers) {
  in_all_orders([](interleaving& order) {
    channel<counted> places(2);
    std::vector<int> values;
    started first(watch(places)), second(watch(places)), consumer(pop(places, values));
    order.run({[&] { first.start(); }, [&] { second.start(); }, [&] { consumer.start(); }});
    EXPECT_TRUE(first.finished());
    EXPECT_TRUE(second.finished());
    EXPECT_FALSE(consumer.ended());
    places.close();
  });
}

TEST(Interleavings, AStopOfAConsumerLosesNoValue) {
  counted::check check;
  in_all_orders([](interleaving& order) {
    channel<counted> places(1);
    std::vector<int> values;
    started producer(push(places, 1)), consumer(pop(places, values));
    order.run({[&] { producer.start(); }, [&] { consumer.start(); }, [&] { consumer.stop(); }});
    EXPECT_TRUE(producer.finished());
    EXPECT_TRUE(consumer.ended());
    EXPECT_EQ(places.size() + values.size(), 1u);
    EXPECT_EQ(consumer.finished(), values.size() == 1);
  });
}

TEST(Interleavings, AStopOfAProducerLosesAndDoublesNoValue) {
  counted::check check;
  in_all_orders([](interleaving& order) {
    channel<counted> places(1);
    std::vector<int> values;
    started producer(push_two(places)), consumer(pop(places, values));
    order.run({[&] { producer.start(); }, [&] { consumer.start(); }, [&] { producer.stop(); }});
    EXPECT_TRUE(producer.ended());
    bool all = producer.finished();
    if (consumer.finished()) {
      EXPECT_EQ(values, std::vector{1});
    }
    EXPECT_LE(places.size() + values.size(), 2u);
    if (all) {
      EXPECT_EQ(places.size() + values.size(), 2u);
    }
    places.close();
  });
}

TEST(Interleavings, ACloseEndsAllWaitsInAChannel) {
  counted::check check;
  in_all_orders([](interleaving& order) {
    channel<counted> places(1);
    std::vector<int> values;
    started producer(push_two(places)), consumer(pop(places, values));
    order.run({[&] { producer.start(); }, [&] { consumer.start(); }, [&] { places.close(); }});
    EXPECT_TRUE(producer.ended());
    EXPECT_TRUE(consumer.finished());
    if (producer.finished()) {
      EXPECT_EQ(places.size() + values.size(), 2u);
    }
  });
}

TEST(Interleavings, ACloseEndsTheWaitForDemand) {
  in_all_orders([](interleaving& order) {
    channel<counted> places(1);
    std::vector<int> values;
    started producer(watch(places)), consumer(pop(places, values));
    order.run({[&] { producer.start(); }, [&] { consumer.start(); }, [&] { places.close(); }});
    EXPECT_TRUE(producer.finished());
    EXPECT_TRUE(consumer.finished());
  });
}

TEST(Interleavings, AStopEndsTheWaitForDemand) {
  in_all_orders([](interleaving& order) {
    channel<counted> places(1);
    std::vector<int> values;
    started producer(watch(places)), consumer(pop(places, values));
    order.run({[&] { producer.start(); }, [&] { consumer.start(); }, [&] { producer.stop(); }});
    EXPECT_TRUE(producer.ended());
    places.close();
  });
}

TEST(Interleavings, TwoConsumersShareWhatIsPushed) {
  counted::check check;
  in_all_orders([](interleaving& order) {
    channel<counted> places(1);
    std::vector<int> values;
    started producer(push_two(places));
    started first(pop(places, values)), second(pop(places, values));
    order.run({[&] { producer.start(); }, [&] { first.start(); }, [&] { second.start(); }});
    EXPECT_TRUE(producer.finished());
    EXPECT_TRUE(first.finished());
    EXPECT_TRUE(second.finished());
    EXPECT_EQ(values.size(), 2u);
  });
}

TEST(Interleavings, AStopOfAWaiterLosesNoPermit) {
  in_all_orders([](interleaving& order) {
    semaphore permits(0);
    started first(acquire(permits)), second(acquire(permits));
    order.run({[&] {
                 first.start();
                 second.start();
               },
               [&] { permits.release(); }, [&] { first.stop(); }});
    int left = permits.try_acquire();
    EXPECT_EQ(first.finished() + second.finished() + left, 1);
    EXPECT_TRUE(first.ended());
    EXPECT_TRUE(second.ended() || first.finished());
    permits.release();
  });
}

TEST(Interleavings, APermitIsAcquiredOnce) {
  in_all_orders([](interleaving& order) {
    semaphore permits(1);
    started first(acquire(permits)), second(acquire(permits));
    order.run({[&] { first.start(); }, [&] { second.start(); }, [&] { permits.release(); }});
    EXPECT_TRUE(first.finished());
    EXPECT_TRUE(second.finished());
    EXPECT_FALSE(permits.try_acquire());
  });
}

TEST(Interleavings, AnEventWakesAllWaitersThatAreNotStopped) {
  in_all_orders([](interleaving& order) {
    event happened;
    started first(wait_for(happened)), second(wait_for(happened));
    order.run({[&] {
                 first.start();
                 second.start();
               },
               [&] { happened.set(); }, [&] { first.stop(); }});
    EXPECT_TRUE(first.ended());
    EXPECT_TRUE(second.finished());
    EXPECT_TRUE(happened.is_set());
  });
}

static task<> wait_for_value(future<int> awaited, int& value) {
  value = co_await std::move(awaited);
}

static task<> wait_uninterrupted(future<int> awaited, int& value) {
  value = co_await std::move(awaited).uninterruptible();
}

TEST(Interleavings, APromiseDeliversToAWaiterThatIsNotStopped) {
  in_all_orders([](interleaving& order) {
    promise<int> unset;
    int value = 0;
    started waiting(wait_for_value(unset.get_future(), value));
    order.run({[&] { waiting.start(); }, [&] { unset.set_value(7); }, [&] { waiting.stop(); }});
    EXPECT_TRUE(waiting.ended());
    EXPECT_EQ(value, waiting.finished() ? 7 : 0);
  });
}

TEST(Interleavings, AStopDoesNotEndAnUninterruptibleWait) {
  in_all_orders([](interleaving& order) {
    promise<int> unset;
    int value = 0;
    started waiting(wait_uninterrupted(unset.get_future(), value));
    order.run({[&] { waiting.start(); }, [&] { unset.set_value(7); }, [&] { waiting.stop(); }});
    EXPECT_TRUE(waiting.finished());
    EXPECT_EQ(value, 7);
  });
}

TEST(Interleavings, AnAbandonedPromiseEndsTheWait) {
  in_all_orders([](interleaving& order) {
    std::optional<promise<int>> unset(std::in_place);
    int value = 0;
    started waiting(wait_uninterrupted(unset->get_future(), value));
    order.run({[&] { waiting.start(); }, [&] { unset.reset(); }});
    EXPECT_TRUE(waiting.ended());
    EXPECT_EQ(testing_support::code_of([&] { waiting.finished(); }), errc::abandoned);
  });
}

TEST(Interleavings, AScopeIsJoinedWhenAllChildrenHaveEnded) {
  in_all_orders([](interleaving& order) {
    event happened;
    scope children;
    children.start(wait_for(happened));
    auto join = [](scope& joined) -> task<> { co_await joined.join(); };
    auto end = [](scope& watched) -> task<> { co_await watched.ended(); };
    started joining(join(children)), watching(end(children));
    order.run({[&] { joining.start(); }, [&] { watching.start(); }, [&] { happened.set(); }});
    EXPECT_TRUE(joining.finished());
    EXPECT_TRUE(watching.finished());
  });
}

TEST(Interleavings, AFailureStopsTheOtherChildrenOfAScope) {
  in_all_orders([](interleaving& order) {
    event never;
    scope children;
    auto join = [](scope& joined, std::error_code& thrown) -> task<> {
      try {
        co_await joined.join();
      } catch (const error& failure) {
        thrown = failure.code();
      }
    };
    std::error_code thrown;
    started joining(join(children, thrown));
    order.run({[&] { children.start(fail()); }, [&] { children.start(wait_for(never)); }});
    joining.start();
    EXPECT_TRUE(joining.finished());
    EXPECT_EQ(thrown, errc::failed);
  });
}

TEST(Interleavings, AStopEndsTheWaitForTheChildrenOfAScope) {
  in_all_orders([](interleaving& order) {
    event happened;
    scope children;
    children.start(wait_for(happened));
    auto end = [](scope& watched) -> task<> { co_await watched.ended(); };
    started watching(end(children));
    order.run({[&] { watching.start(); }, [&] { watching.stop(); }, [&] { happened.set(); }});
    EXPECT_TRUE(watching.ended());
  });
}

TEST(Interleavings, AScopeWaitsInItsDestructor) {
  in_all_orders([](interleaving& order) {
    event happened;
    std::optional<scope> children(std::in_place);
    children->start(wait_for(happened));
    order.run({[&] { children.reset(); }, [&] { happened.set(); }});
    EXPECT_FALSE(children);
  });
}

static task<int> value_after(event& happened) {
  co_await happened;
  co_return 7;
}

TEST(Interleavings, ATaskIsCompletedOnceAndOnlyAfterItsStartHasReturned) {
  struct noted : detail::completion {
    explicit noted(const bool& start_returned) : completion{note}, returned(start_returned) {}
    static void note(completion& self) noexcept {
      auto& completed = static_cast<noted&>(self);
      ++completed.calls;
      completed.within_start |= !completed.returned;
    }
    const bool& returned;
    int calls = 0;
    bool within_start = false;
  };
  int completed_later = 0;
  auto orders = in_all_orders_of_atomics([&](interleaving& order) {
    event happened;
    bool ended = false;
    bool returned = false;
    noted done(returned);
    detail::promise_base root;
    auto work = value_after(happened);
    order.run({[&] {
                 ended = work.start(root, done) != detail::arrival::later;
                 returned = true;
               },
               [&] { happened.set(); }});
    EXPECT_EQ(ended + done.calls, 1);
    EXPECT_FALSE(done.within_start);
    EXPECT_EQ(work.take(), 7);
    completed_later += done.calls;
  });
  EXPECT_GT(completed_later, 0);
  EXPECT_LT(completed_later, static_cast<int>(orders));
}

// A coroutine outside a runtime that awaits a task.
struct awaiting {
  static testing_support::foreign_coroutine start(task<int> work, awaiting& seen) {
    seen.started_on = std::this_thread::get_id();
    seen.value = co_await std::move(work);
    ++seen.resumed;
    seen.resumed_on = std::this_thread::get_id();
    seen.resumed_within_start = !seen.start_returned;
  }

  int value = 0;
  int resumed = 0;
  bool start_returned = false;
  bool resumed_within_start = false;
  std::thread::id started_on;
  std::thread::id resumed_on;
};

TEST(Interleavings, ACoroutineResumesWhereItStartedATaskThatEndedBeforeTheStartReturned) {
  int resumed_elsewhere = 0;
  auto orders = in_all_orders_of_atomics([&](interleaving& order) {
    event happened;
    awaiting seen;
    order.run({[&] {
                 awaiting::start(value_after(happened), seen);
                 seen.start_returned = true;
               },
               [&] { happened.set(); }});
    EXPECT_EQ(seen.resumed, 1);
    EXPECT_EQ(seen.value, 7);
    EXPECT_EQ(seen.resumed_on == seen.started_on, seen.resumed_within_start);
    resumed_elsewhere += seen.resumed_on != seen.started_on;
  });
  EXPECT_GT(resumed_elsewhere, 0);
  EXPECT_LT(resumed_elsewhere, static_cast<int>(orders));
}

static async_generator<int> two_values(event& first, event& second) {
  co_await first;
  co_yield 1;
  co_await second;
  co_yield 2;
}

static testing_support::foreign_coroutine take_all(async_generator<int> from,
                                                   std::vector<int>& values, int& ended) {
  while (auto* value = co_await from.next()) values.push_back(*value);
  ++ended;
}

TEST(Interleavings, AGeneratorDeliversEachValueOnce) {
  in_all_orders_of_atomics([](interleaving& order) {
    event first, second;
    std::vector<int> values;
    int ended = 0;
    order.run({[&] { take_all(two_values(first, second), values, ended); },
               [&] {
                 first.set();
                 second.set();
               }});
    EXPECT_EQ(values, (std::vector{1, 2}));
    EXPECT_EQ(ended, 1);
  });
}

}  // namespace lade
