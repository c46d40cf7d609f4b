#include <lade/detail/memory/demand.hpp>
#include <lade/detail/runtime/alarm.hpp>
#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/sleep.hpp>
#include <lade/sync_wait.hpp>
#include <lade/this_context.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../support/coroutines.hpp"
#include "../support/live_allocations.hpp"
#include "../support/pipelines.hpp"
#include "../support/reactors.hpp"

namespace lade::sleep_test {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using testing_support::code_of;

class Sleep : public testing_support::ReactorTest {};
class WithTimeout : public testing_support::ReactorTest {};

INSTANTIATE_TEST_SUITE_P(On, Sleep, testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         testing_support::reactor_name);
INSTANTIATE_TEST_SUITE_P(On, WithTimeout,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         testing_support::reactor_name);

TEST_P(Sleep, LastsAsLongAsAsked) {
  runtime runtime(options(1));
  auto began = steady_clock::now();
  sync_wait(runtime, sleep(20ms));
  EXPECT_GE(steady_clock::now() - began, 20ms);
  sync_wait(runtime, sleep(0ms));
  sync_wait(runtime, sleep(-1h));
}

TEST(SleepOutside, OfARuntimeIsRefused) {
  EXPECT_EQ(code_of([] { sync_wait(sleep(1ms)); }), errc::no_runtime);
}

TEST_P(Sleep, AStopEndsIt) {
  runtime runtime(options(1));
  std::stop_source source;
  std::jthread stopper([&source] { source.request_stop(); });
  EXPECT_EQ(code_of([&] { sync_wait(runtime, sleep(10min), source.get_token()); }), errc::stopped);
  EXPECT_EQ(code_of([&] { sync_wait(runtime, sleep(10min), source.get_token()); }), errc::stopped);
}

static task<> sleep_and_count(std::chrono::nanoseconds duration, std::atomic<int>& ended) {
  try {
    co_await sleep(duration);
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::stopped);
  }
  ++ended;
}

static task<> await_readable(int fd, std::atomic<int>& ended) {
  auto result = co_await detail::operation(
      {.what = detail::io_operation::kind::poll, .fd = fd, .flags = POLLIN});
  EXPECT_TRUE(result > 0 || result == -ECANCELED) << result;
  ++ended;
}

static task<> join(scope& children) { co_await children.join(); }

TEST_P(Sleep, AStopMayRaceWithItsEnd) {
  constexpr int rounds = 500;
  runtime runtime(options(2));
  std::atomic<int> ended = 0;
  std::vector<std::stop_source> sources(rounds);
  scope children(context{.runtime = &runtime, .home = &runtime.pool()});
  testing_support::race(
      rounds,
      [&](int i) {
        context execution{.runtime = &runtime,
                          .home = &runtime.pool(),
                          .stop = sources[static_cast<std::size_t>(i)].get_token()};
        auto sleeping = sleep_and_count(std::chrono::microseconds(i % 100), ended);
        children.start(testing_support::in(execution, std::move(sleeping)));
      },
      [&](int i) {
        test::pause(i % 50);
        sources[static_cast<std::size_t>(i)].request_stop();
      });
  sync_wait(join(children));
  EXPECT_EQ(ended, rounds);
}

TEST_P(Sleep, AStopMayRaceWithTheEndOfAnOperation) {
  constexpr int rounds = 500;
  runtime runtime(options(2));
  std::atomic<int> ended = 0;
  for (int i = 0; i < rounds; ++i) {
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    std::stop_source source;
    context execution{.runtime = &runtime, .home = &runtime.pool(), .stop = source.get_token()};
    scope children(execution);
    children.start(testing_support::in(execution, await_readable(fd, ended)));
    test::pause(i % 50);
    std::jthread stopper([&source] { source.request_stop(); });
    EXPECT_EQ(eventfd_write(fd, 1), 0);
    sync_wait(join(children));
    close(fd);
  }
  EXPECT_EQ(ended, rounds);
}

static task<int> give(int value) { co_return value; }

static task<int> sleep_and_give(std::chrono::nanoseconds duration, int value) {
  co_await sleep(duration);
  co_return value;
}

TEST_P(WithTimeout, ReturnsTheResultOfWorkInTime) {
  runtime runtime(options(1));
  EXPECT_EQ(sync_wait(runtime, with_timeout(10min, give(1))), 1);
  EXPECT_EQ(sync_wait(runtime, with_timeout(10min, sleep_and_give(1ms, 2))), 2);
  sync_wait(runtime, with_timeout(10min, sleep(1ms)));
}

TEST_P(WithTimeout, WorkThatIsLateIsStopped) {
  runtime runtime(options(1));
  auto began = steady_clock::now();
  EXPECT_EQ(code_of([&] { sync_wait(runtime, with_timeout(10ms, sleep(10min))); }),
            errc::timed_out);
  EXPECT_GE(steady_clock::now() - began, 10ms);
}

// Blocks its thread until it is asked to stop, and does not.
static int work_until(const std::stop_token& stop) {
  while (!stop.stop_requested()) std::this_thread::yield();
  return 3;
}

// The same for some time, whoever asks it.
static task<int> work_on(std::chrono::nanoseconds duration) {
  auto end = steady_clock::now() + duration;
  while (steady_clock::now() < end) {}
  co_return 3;
}

static task<int> work_on_pool(runtime& where) {
  auto here = co_await this_context();
  co_return co_await where.pool().run(work_until, here.stop);
}

TEST_P(WithTimeout, ReturnsTheResultOfWorkThatIgnoresTheStop) {
  runtime runtime(options(1));
  EXPECT_EQ(sync_wait(runtime, with_timeout(1ms, work_on_pool(runtime))), 3);
  EXPECT_EQ(sync_wait(runtime, with_timeout(1ms, work_on(5ms))), 3);
}

static task<> fail(std::chrono::nanoseconds after) {
  co_await sleep(after);
  throw std::runtime_error("why");
}

TEST_P(WithTimeout, WorkThatDoesNotSuspendFinishesWithATimeoutOfZero) {
  runtime runtime(options(1));
  EXPECT_EQ(sync_wait(runtime, with_timeout(0ms, give(1))), 1);
  EXPECT_EQ(sync_wait(runtime, with_timeout(-1h, give(2))), 2);
  EXPECT_EQ(code_of([&] { sync_wait(runtime, with_timeout(0ms, sleep(10min))); }), errc::timed_out);
}

TEST_P(WithTimeout, ThrowsWhatTheWorkThrows) {
  runtime runtime(options(1));
  EXPECT_THROW(sync_wait(runtime, with_timeout(10min, fail(1ms))), std::runtime_error);
}

TEST_P(WithTimeout, AStopFromOutsideIsNoTimeout) {
  runtime runtime(options(1));
  std::stop_source source;
  std::jthread stopper([&source] { source.request_stop(); });
  auto code =
      code_of([&] { sync_wait(runtime, with_timeout(10min, sleep(10min)), source.get_token()); });
  EXPECT_EQ(code, errc::stopped);
}

TEST_P(WithTimeout, Nests) {
  runtime runtime(options(1));
  auto nested = with_timeout(10min, with_timeout(1ms, sleep(10min)));
  EXPECT_EQ(code_of([&] { sync_wait(runtime, std::move(nested)); }), errc::timed_out);
  auto outer = with_timeout(1ms, with_timeout(10min, sleep(10min)));
  EXPECT_EQ(code_of([&] { sync_wait(runtime, std::move(outer)); }), errc::timed_out);
}

TEST_P(WithTimeout, TimeInWhichMemoryIsWaitedForDoesNotCount) {
  runtime runtime(options(1));
  detail::memory_claim claim(std::make_shared<detail::demand>());
  context execution{.runtime = &runtime, .claim = &claim};
  claim.waited.begin(steady_clock::now());
  detail::alarm late(execution, 1ns);
  std::latch stopped(1);
  std::stop_callback count_down(late.stop_token(), [&stopped] { stopped.count_down(); });
  sync_wait(runtime, sleep(20ms));
  EXPECT_FALSE(late.has_expired());
  claim.waited.end(steady_clock::now());
  stopped.wait();
  EXPECT_TRUE(late.has_expired());
}

struct two_latches {
  std::latch started{1};
  std::latch released{1};
};

static task<> finish_in_time(int times) {
  for (; times > 0; --times) (void)co_await with_timeout(1h, give(1));
}

TEST_P(WithTimeout, FinishedWorkLeavesNoTimersToABlockedReactor) {
  two_latches block;  // outlives the thread that waits for it
  runtime runtime(options(1));
  runtime.reactor().post({[](void* latches) noexcept {
                            auto& both = *static_cast<two_latches*>(latches);
                            both.started.count_down();
                            both.released.wait();
                          },
                          &block});
  block.started.wait();
  sync_wait(runtime, finish_in_time(10));
  auto blocks = test::blocks_in_use();
  sync_wait(runtime, finish_in_time(1000));
  EXPECT_LE(test::blocks_in_use(), blocks + 50);
  block.released.count_down();
}

// While memory is waited for, the time that is left stays the same.
TEST(LimitedTime, IsCheckedSeldomWhileItDoesNotPass) {
  auto now = steady_clock::now();
  detail::limited_time brief(1ns, now, 5ms);
  EXPECT_EQ(brief.left(now + 3s, 5ms + 3s), 1ns);
  EXPECT_EQ(brief.next_check(now, 1ns), now + 1ms);
  detail::limited_time longer(16s, now, 0ms);
  EXPECT_EQ(longer.left(now + 16s, 100ms), 100ms);
  EXPECT_EQ(longer.next_check(now, 100ms), now + 1s);
  EXPECT_EQ(longer.next_check(now, 2s), now + 2s);
}

TEST(LimitedTime, ExpiresAtItsEnd) {
  auto now = steady_clock::now();
  EXPECT_LE(detail::limited_time(-1h, now, 0ms).left(now, 0ms), 0ns);
  EXPECT_LE(detail::limited_time(10ms, now, 0ms).left(now + 10ms, 0ms), 0ns);
  EXPECT_GT(detail::limited_time(std::chrono::nanoseconds::max(), now, 0ms).left(now + 1h, 0ms),
            0ns);
}

TEST(WithTimeoutOutside, OfARuntimeIsRefused) {
  EXPECT_EQ(code_of([] { sync_wait(with_timeout(1ms, sleep(1ms))); }), errc::no_runtime);
}

static task<> record_start(bool& started) {
  started = true;
  co_return;
}

TEST(WithTimeoutOutside, OfARuntimeStartsNoWork) {
  bool started = false;
  EXPECT_EQ(code_of([&] { sync_wait(with_timeout(1ms, record_start(started))); }),
            errc::no_runtime);
  EXPECT_FALSE(started);
}

static task<int> race_sleep_with_timeout(int i) {
  try {
    co_return co_await with_timeout(std::chrono::microseconds(50 + i % 7),
                                    sleep_and_give(std::chrono::microseconds(50 + i % 5), 1));
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::timed_out);
    co_return 0;
  }
}

TEST_P(WithTimeout, TheTimeMayRaceWithTheEnd) {
  runtime runtime(options(2));
  for (int i = 0; i < 500; ++i) {
    int result = sync_wait(runtime, race_sleep_with_timeout(i));
    EXPECT_TRUE(result == 0 || result == 1);
  }
}

}  // namespace lade::sleep_test
