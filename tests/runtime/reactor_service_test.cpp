#include <lade/error.hpp>
#include <lade/reactor_service.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/sync_wait.hpp>
#include <lade/this_context.hpp>
#include <lade/when_all.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../support/reactors.hpp"

namespace lade::reactor_service_test {

using namespace testing_support;
using namespace std::chrono_literals;

struct socket_pair {
  int ours = -1;
  int theirs = -1;

  socket_pair() {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
      throw std::runtime_error("socketpair");
    ours = ends[0];
    theirs = ends[1];
  }
  socket_pair(const socket_pair&) = delete;
  socket_pair& operator=(const socket_pair&) = delete;
  ~socket_pair() {
    if (ours >= 0) ::close(ours);
    ::close(theirs);
  }
};

// Waits for descriptors on behalf of coroutines, and remembers what it was called for.
class waits final : public reactor_service {
 public:
  explicit waits(detail::reactor& where) : reactor_service(where) { ++made; }
  ~waits() override {
    ++ended;
    ended_by = std::this_thread::get_id();
  }

  struct waiting {
    unsigned happened = 0;
    bool is_over = false;
    void (*resume)(waiting&) noexcept = nullptr;
  };

  void wait(int fd, unsigned events, waiting& who) {
    fd_ = fd;
    who_ = &who;
    poll(fd, events);
  }
  void wait_until(clock::time_point when, waiting& who) {
    who_ = &who;
    set_timer(when);
  }
  void forget() {
    poll(fd_, 0);
    who_ = nullptr;
  }
  using reactor_service::poll;

  static inline std::atomic<int> made = 0;
  static inline std::atomic<int> ended = 0;
  static inline std::atomic<std::thread::id> ended_by;

 private:
  void ready(int, unsigned events) noexcept override {
    if (!who_) return;
    who_->happened = events;
    who_->is_over = true;
  }
  void expired() noexcept override {
    who_->happened = 0;
    who_->is_over = true;
  }
  void end_turn() noexcept override {
    if (!who_ || !who_->is_over) return;
    auto& who = *who_;
    who_ = nullptr;
    who.resume(who);
  }

  int fd_ = -1;
  waiting* who_ = nullptr;
};

// `co_await readiness(fd, events)` gives the events that happened.
class readiness {
 public:
  class awaiter final : public service_await<waits>, private waits::waiting {
   public:
    awaiter(int fd, unsigned events, waits::clock::duration limit)
        : fd_(fd), events_(events), limit_(limit) {
      resume = [](waiting& self) noexcept { static_cast<awaiter&>(self).complete("after a wait"); };
    }
    unsigned await_resume() const {
      if (ended_early() || stopped()) throw error(errc::stopped, "wait");
      return happened;
    }

   private:
    void begin() noexcept override {
      if (fd_ >= 0) service().wait(fd_, events_, *this);
      if (limit_.count() > 0) service().wait_until(waits::clock::now() + limit_, *this);
    }
    void end_early() noexcept override {
      service().forget();
      complete("after a wait");
    }

    int fd_;
    unsigned events_;
    waits::clock::duration limit_;
  };

  readiness(int fd, unsigned events, waits::clock::duration limit = {})
      : fd_(fd), events_(events), limit_(limit) {}
  awaiter operator co_await() const noexcept { return {fd_, events_, limit_}; }

 private:
  int fd_;
  unsigned events_;
  waits::clock::duration limit_;
};

static task<unsigned> wait_for(int fd, unsigned events, waits::clock::duration limit = {}) {
  co_return co_await readiness(fd, events, limit);
}

static task<> join_all(scope& children) { co_await children.join(); }

class ReactorService : public ReactorTest {
 protected:
  static runtime_options one_reactor() {
    auto result = options();
    result.reactors = 1;
    return result;
  }
};
INSTANTIATE_TEST_SUITE_P(Both, ReactorService,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         reactor_name);

TEST_P(ReactorService, IsMadeOncePerReactorAndEndsOnItsThread) {
  const int made = waits::made;
  const int ended = waits::ended;
  std::thread::id reactor;
  {
    socket_pair sockets;
    runtime runtime(one_reactor());
    EXPECT_EQ(sync_wait(runtime, wait_for(sockets.ours, POLLOUT)), unsigned{POLLOUT});
    EXPECT_EQ(sync_wait(runtime, wait_for(sockets.ours, POLLOUT)), unsigned{POLLOUT});
    run_on_reactor(runtime, [&] { reactor = std::this_thread::get_id(); });
    EXPECT_EQ(waits::ended, ended);
  }
  EXPECT_EQ(waits::made, made + 1);
  EXPECT_EQ(waits::ended, ended + 1);
  EXPECT_EQ(waits::ended_by.load(), reactor);
}

TEST_P(ReactorService, IsNotifiedOfADescriptorUntilItUnsubscribes) {
  socket_pair sockets;
  runtime runtime(one_reactor());
  EXPECT_EQ(sync_wait(runtime, wait_for(sockets.ours, POLLIN | POLLOUT)), unsigned{POLLOUT});
  ASSERT_EQ(write(sockets.theirs, "x", 1), 1);
  EXPECT_EQ(sync_wait(runtime, wait_for(sockets.ours, POLLIN)), unsigned{POLLIN});
  EXPECT_EQ(sync_wait(runtime, wait_for(sockets.ours, POLLIN | POLLOUT)),
            unsigned{POLLIN | POLLOUT});
  run_on_reactor(runtime, [&] { runtime.reactor().service<waits>().forget(); });
}

TEST_P(ReactorService, AStopEndsAWait) {
  socket_pair sockets;
  runtime runtime(one_reactor());
  std::stop_source stop;
  std::jthread stopping([&] {
    run_on_reactor(runtime, [] {});
    stop.request_stop();
  });
  EXPECT_THROW(sync_wait(runtime, wait_for(sockets.ours, POLLIN), stop.get_token()), error);
}

TEST_P(ReactorService, IsNotifiedOfItsTimer) {
  runtime runtime(one_reactor());
  EXPECT_EQ(sync_wait(runtime, wait_for(-1, 0, 1ms)), 0u);
}

// Coroutines that each have an alarm, in the order in which these rang.
class alarms final : public reactor_service {
 public:
  class awaiter;

  explicit alarms(reactor_thread& where) : reactor_service(where) {}

 private:
  void ready(int, unsigned) noexcept override {}
  void expired() noexcept override {}
  void end_turn() noexcept override;

  std::vector<awaiter*> rung_;
};

class alarms::awaiter final : public service_await<alarms> {
 public:
  // It is set once for each time, as soon as it has been set before.
  explicit awaiter(std::vector<reactor_timer::clock::time_point> times)
      : times_(std::move(times)) {}

  bool await_resume() const {
    if (stopped() || ended_early()) throw error(errc::stopped, "wait for an alarm");
    return bell_.is_set();
  }

 private:
  friend class alarms;
  class bell final : public reactor_timer {
   public:
    explicit bell(awaiter& of) noexcept : of_(of) {}

   private:
    void expired() noexcept override { of_.service().rung_.push_back(&of_); }

    awaiter& of_;
  };

  void begin() noexcept override {
    for (auto time : times_) bell_.set(where(), time);
    EXPECT_TRUE(bell_.is_set());
    EXPECT_EQ(bell_.when(), times_.back());
  }
  void end_early() noexcept override {
    bell_.cancel(where());
    complete("after an alarm");
  }

  std::vector<reactor_timer::clock::time_point> times_;
  bell bell_{*this};
};

void alarms::end_turn() noexcept {
  for (auto* each : std::exchange(rung_, {})) each->complete("after an alarm");
}

class alarm_at {
 public:
  explicit alarm_at(std::vector<reactor_timer::clock::time_point> times)
      : times_(std::move(times)) {}
  alarms::awaiter operator co_await() const { return alarms::awaiter(times_); }

 private:
  std::vector<reactor_timer::clock::time_point> times_;
};

static task<> wait_for_alarm(std::vector<reactor_timer::clock::time_point> times,
                             std::vector<int>& rung, int number) {
  alarm_at alarm(std::move(times));
  bool is_set = co_await alarm;
  EXPECT_FALSE(is_set);
  rung.push_back(number);
}

// Sets all timers before the reactor looks at any.
static task<> wait_for_three_alarms(std::vector<int>& rung) {
  auto now = reactor_timer::clock::now();
  auto never = reactor_timer::clock::time_point::max();
  auto third = wait_for_alarm({now + 3ms}, rung, 3);
  auto first = wait_for_alarm({now + 1ms}, rung, 1);
  auto second = wait_for_alarm({never, now + 2ms}, rung, 2);
  co_await when_all(std::move(third), std::move(first), std::move(second));
}

TEST_P(ReactorService, HasSeveralTimersThatMayBeSetAgain) {
  runtime runtime(one_reactor());
  std::vector<int> rung;
  scope children(context{.runtime = &runtime, .home = &runtime.reactor()});
  children.start(wait_for_three_alarms(rung));
  sync_wait(join_all(children));
  EXPECT_EQ(rung, (std::vector{1, 2, 3}));
}

TEST_P(ReactorService, AStopCancelsATimer) {
  runtime runtime(one_reactor());
  std::vector<int> rung;
  std::stop_source stop;
  std::jthread stopping([&] {
    run_on_reactor(runtime, [] {});
    stop.request_stop();
  });
  auto never = reactor_timer::clock::time_point::max();
  auto wait = wait_for_alarm({never}, rung, 1);
  EXPECT_THROW(sync_wait(runtime, std::move(wait), stop.get_token()), error);
  EXPECT_TRUE(rung.empty());
}

TEST_P(ReactorService, DescriptorsThatCannotBePolledAreInError) {
  runtime runtime(one_reactor());
  EXPECT_EQ(sync_wait(runtime, wait_for(1'000'000, POLLIN)), unsigned{POLLERR});
  run_on_reactor(runtime, [&] { runtime.reactor().service<waits>().forget(); });
}

TEST_P(ReactorService, ItsPollsKeepNoRuntimeAliveAndCountForNothing) {
  socket_pair idle;
  {
    runtime runtime(one_reactor());
    run_on_reactor(runtime, [&] {
      auto& reactor = runtime.reactor();
      reactor.service<waits>().poll(idle.ours, POLLIN);
      EXPECT_EQ(reactor.in_flight(), 0u);
    });
    run_on_reactor(runtime, [] {});
  }
  char byte = 0;
  ::close(std::exchange(idle.ours, -1));
  EXPECT_EQ(read(idle.theirs, &byte, 1), 0);  // nothing holds the other end any more
}

TEST_P(ReactorService, APolledDescriptorMayBeClosedAndItsNumberUsedAgain) {
  runtime runtime(one_reactor());
  for (int round = 0; round < 200; ++round) {
    socket_pair sockets;
    ASSERT_EQ(write(sockets.theirs, "x", 1), 1);
    EXPECT_EQ(sync_wait(runtime, wait_for(sockets.ours, POLLIN)), unsigned{POLLIN});
    run_on_reactor(runtime, [&] { runtime.reactor().service<waits>().forget(); });
  }
}

}  // namespace lade::reactor_service_test
