#include "../support/reactors.hpp"
#include "../support/seed.hpp"
#include "../support/temp_dir.hpp"

#include <lade/detail/runtime/activity.hpp>
#include <lade/detail/runtime/operation.hpp>
#include <lade/error.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <latch>
#include <memory>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lade::reactor_test {

using namespace testing_support;
using namespace std::chrono_literals;
using detail::io_operation;
using detail::operation;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct pipe_ends {
  int read_end = -1;
  int write_end = -1;

  pipe_ends() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    read_end = ends[0];
    write_end = ends[1];
  }
  pipe_ends(const pipe_ends&) = delete;
  pipe_ends& operator=(const pipe_ends&) = delete;
  ~pipe_ends() {
    close(read_end);
    close(write_end);
  }
  void put(std::string_view text) const {
    ASSERT_EQ(write(write_end, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
};

static task<std::int64_t> make_call(io_operation call) { co_return co_await operation(call); }

static io_operation open_call(const std::string& path, int flags = O_RDONLY | O_CLOEXEC) {
  return {.what = io_operation::kind::open, .fd = AT_FDCWD, .path = path.c_str(), .flags = flags};
}

static io_operation read_call(int fd, std::string& into, std::uint64_t offset = 0) {
  return {.what = io_operation::kind::read,
          .fd = fd,
          .data = into.data(),
          .bytes = into.size(),
          .offset = offset};
}

static io_operation poll_call(int fd, int events) {
  return {.what = io_operation::kind::poll, .fd = fd, .flags = events};
}

static auto now() { return detail::clock::now(); }

// A system call that has started when the constructor returns.
class started_call {
 public:
  started_call(runtime& where, io_operation call, std::stop_token stop = {})
      : children_(context{.runtime = &where, .home = &where.reactor(), .stop = std::move(stop)}) {
    children_.start(make(std::move(call), result_));
    struct statx found{};
    io_operation later{
        .what = io_operation::kind::stat, .fd = AT_FDCWD, .path = "/", .data = &found};
    sync_wait(where, make_call(later));  // its turn comes when the first has had its own
  }

  std::int64_t wait() {
    sync_wait(join(children_));
    return result_;
  }

 private:
  static task<> make(io_operation call, std::int64_t& result) {
    result = co_await make_call(std::move(call));
  }
  static task<> join(scope& children) { co_await children.join(); }

  std::int64_t result_ = 0;
  scope children_;
};

class Reactor : public ReactorTest {};
INSTANTIATE_TEST_SUITE_P(Both, Reactor,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         reactor_name);

TEST_P(Reactor, OpensReadsAndCloses) {
  temp_dir dir;
  auto path = dir.write("text", "0123456789");
  runtime runtime(options());
  auto fd = static_cast<int>(sync_wait(runtime, make_call(open_call(path))));
  ASSERT_GE(fd, 0);
  std::string text(100, ' ');
  EXPECT_EQ(sync_wait(runtime, make_call(read_call(fd, text, 4))), 6);
  EXPECT_EQ(text.substr(0, 7), "456789 ");
  EXPECT_EQ(sync_wait(runtime, make_call(read_call(fd, text, 10))), 0);
  EXPECT_EQ(sync_wait(runtime, make_call({.what = io_operation::kind::close, .fd = fd})), 0);
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
}

TEST_P(Reactor, ReturnsTheErrorOfTheSystemCall) {
  runtime runtime(options());
  EXPECT_EQ(sync_wait(runtime, make_call(open_call("/no/such/file"))), -ENOENT);
  std::string text(1, ' ');
  EXPECT_EQ(sync_wait(runtime, make_call(read_call(-1, text))), -EBADF);
}

TEST_P(Reactor, StatsByName) {
  temp_dir dir;
  auto path = dir.write("text", "0123456789");
  runtime runtime(options());
  struct statx found{};
  io_operation call{
      .what = io_operation::kind::stat, .fd = AT_FDCWD, .path = path.c_str(), .data = &found};
  EXPECT_EQ(sync_wait(runtime, make_call(call)), 0);
  EXPECT_EQ(found.stx_size, 10u);
}

TEST_P(Reactor, AReadOfAPipeWaitsForData) {
  pipe_ends pipe;
  runtime runtime(options());
  std::string text(10, ' ');
  started_call reading(runtime, read_call(pipe.read_end, text));
  pipe.put("late");
  EXPECT_EQ(reading.wait(), 4);
  EXPECT_EQ(text.substr(0, 4), "late");
}

TEST_P(Reactor, ACancelledReadLeavesItsBufferAloneAfterwards) {
  pipe_ends pipe;
  runtime runtime(options());
  std::stop_source stop;
  std::string text(10, 'x');
  started_call reading(runtime, read_call(pipe.read_end, text), stop.get_token());
  stop.request_stop();
  EXPECT_EQ(reading.wait(), -ECANCELED);
  pipe.put("too late");
  EXPECT_EQ(text, "xxxxxxxxxx");
  std::string still_there(10, ' ');
  EXPECT_EQ(sync_wait(runtime, make_call(read_call(pipe.read_end, still_there))), 8);
}

TEST_P(Reactor, NothingStartsAfterAStop) {
  runtime runtime(options());
  std::stop_source stop;
  stop.request_stop();
  auto call = make_call(open_call("/dev/null"));
  EXPECT_EQ(sync_wait(runtime, std::move(call), stop.get_token()), -ECANCELED);
}

TEST_P(Reactor, AnOpenOfAFifoThatNobodyWritesToCanBeStopped) {
  temp_dir dir;
  auto path = dir / "fifo";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  runtime runtime(options());
  std::stop_source stop;
  started_call opening(runtime, open_call(path), stop.get_token());
  stop.request_stop();
  auto result = opening.wait();
  if (result >= 0) close(static_cast<int>(result));
  EXPECT_TRUE(result >= 0 || result == -ECANCELED || result == -EINTR) << result;
}

TEST_P(Reactor, PollsOfOneDescriptorAreIndependent) {
  pipe_ends pipe;
  runtime runtime(options());
  std::stop_source stop;
  started_call first(runtime, poll_call(pipe.read_end, POLLIN), stop.get_token());
  started_call second(runtime, poll_call(pipe.read_end, POLLIN));
  stop.request_stop();
  EXPECT_EQ(first.wait(), -ECANCELED);
  pipe.put("x");
  EXPECT_EQ(second.wait(), POLLIN);
}

TEST_P(Reactor, WhatCannotBePolledIsReady) {
  temp_dir dir;
  auto path = dir.write("text", "0123456789");
  runtime runtime(options());
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(sync_wait(runtime, make_call(poll_call(fd, POLLIN))), POLLIN);
  close(fd);
}

// More at once than the queues of a ring hold, all cancelled at once as well.
TEST_P(Reactor, ManyOperationsCompleteAndCanBeCancelled) {
  constexpr std::size_t count = 10'000;
  pipe_ends pipe;
  runtime runtime(options());
  struct counted : io_operation {
    std::latch* left;
  };
  std::latch left(count);
  std::vector<counted> all(count);
  for (auto& each : all) {
    static_cast<io_operation&>(each) = poll_call(pipe.read_end, POLLIN);
    each.left = &left;
    each.completed = [](io_operation& self) noexcept {
      static_cast<counted&>(self).left->count_down();
    };
  }
  // The fallback needs a descriptor for each poll.
  std::size_t used = GetParam() == reactor_kind::fallback ? 500 : count;
  left.count_down(static_cast<std::ptrdiff_t>(count - used));
  std::span some(all.data(), used);
  run_on_reactor(runtime, [&] {
    for (auto& each : some) runtime.reactor().submit(each);
  });
  run_on_reactor(runtime, [&] {
    for (auto& each : some.first(used / 2)) runtime.reactor().cancel(each);
  });
  pipe.put("x");
  left.wait();
  auto cancelled = std::ranges::count(some, -ECANCELED, &io_operation::result);
  auto ready = std::ranges::count(some, POLLIN, &io_operation::result);
  EXPECT_EQ(static_cast<std::size_t>(cancelled + ready), used);
  EXPECT_GE(static_cast<std::size_t>(ready), used / 2);
}

TEST_P(Reactor, ClosesInTheBackground) {
  pipe_ends pipe;
  runtime runtime(options());
  run_on_reactor(runtime, [&] { runtime.reactor().close(dup(pipe.write_end)); });
  int writer = std::exchange(pipe.write_end, -1);
  close(writer);
  std::string text(1, ' ');
  EXPECT_EQ(sync_wait(runtime, make_call(read_call(pipe.read_end, text))), 0);
}

TEST_P(Reactor, TimersFireInTheOrderOfTheirDeadlines) {
  struct numbered : detail::timer {
    std::vector<detail::clock::time_point>* fired_at = nullptr;
    std::latch* left = nullptr;
  };
  constexpr std::size_t count = 10'000;
  auto seed = test::new_seed();
  std::mt19937 random(seed);
  std::vector<numbered> timers(count);
  std::vector<detail::clock::time_point> expected;
  std::vector<detail::clock::time_point> fired;
  std::vector<numbered*> removed;
  auto start = now();
  for (auto& each : timers) {
    each.deadline = start + std::chrono::microseconds(random() % 50'000);
    if (random() % 3 == 0)
      removed.push_back(&each);
    else
      expected.push_back(each.deadline);
  }
  std::ranges::sort(expected);
  std::ranges::shuffle(removed, random);
  std::latch left(static_cast<std::ptrdiff_t>(expected.size()));
  runtime runtime(options());
  run_on_reactor(runtime, [&] {
    for (auto& each : timers) {
      each.fired_at = &fired;
      each.left = &left;
      each.fired = [](detail::timer& self) noexcept {
        auto& mine = static_cast<numbered&>(self);
        EXPECT_LE(mine.deadline, now());
        mine.fired_at->push_back(mine.deadline);
        mine.left->count_down();
      };
      runtime.reactor().start(each);
    }
    for (auto* each : removed) runtime.reactor().remove(*each);
  });
  left.wait();
  run_on_reactor(runtime, [] {});
  EXPECT_EQ(fired, expected) << "seed " << seed;
}

TEST_P(Reactor, APostedTimerFiresUnlessItIsWithdrawn) {
  struct counting : detail::timer {
    counting(std::latch& left, detail::clock::time_point at) : to_count(left) {
      deadline = at;
      fired = [](detail::timer& self) noexcept {
        static_cast<counting&>(self).to_count.count_down();
      };
    }
    std::latch& to_count;
  };
  std::latch left(2), blocked(1);
  counting first(left, now()), second(left, now()), third(left, now());
  counting never(left, detail::clock::time_point::max());
  runtime runtime(options());
  auto& reactor = runtime.reactor();
  reactor.post({[](void* latch) noexcept { static_cast<std::latch*>(latch)->wait(); }, &blocked});
  for (auto* each : {&first, &second, &third, &never}) reactor.post(*each);
  EXPECT_TRUE(reactor.withdraw(second));
  EXPECT_FALSE(reactor.withdraw(second));
  blocked.count_down();
  left.wait();
  EXPECT_FALSE(reactor.withdraw(first));
  EXPECT_FALSE(reactor.withdraw(never));  // the reactor has started it with the others
  run_on_reactor(runtime, [&] { reactor.remove(never); });
}

static task<bool> sleep_for(std::chrono::milliseconds time) {
  co_return co_await detail::sleep_until(now() + time);
}

TEST_P(Reactor, ASleepEndsAtItsTimeOrWhenStopped) {
  runtime runtime(options());
  auto start = now();
  EXPECT_TRUE(sync_wait(runtime, sleep_for(20ms)));
  EXPECT_GE(now() - start, 20ms);
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_FALSE(sync_wait(runtime, sleep_for(1h), stop.get_token()));
}

TEST_P(Reactor, PostsFromManyThreadsAllRun) {
  runtime runtime(options());
  constexpr int threads = 8;
  constexpr int posts = 5'000;
  static int sum;  // written on the reactor's thread only
  sum = 0;
  {
    std::vector<std::jthread> posters;
    for (int i = 0; i < threads; ++i)
      posters.emplace_back([&] {
        for (int j = 0; j < posts; ++j)
          runtime.reactor().post({[](void*) noexcept { ++sum; }, nullptr});
      });
  }
  run_on_reactor(runtime, [] {});
  EXPECT_EQ(sum, threads * posts);
}

// A lost wake shows as a hang: every post meets a reactor that is about to fall asleep.
TEST_P(Reactor, NoWakeIsLost) {
  runtime runtime(options());
  for (int i = 0; i < 20'000; ++i) run_on_reactor(runtime, [] {});
}

TEST_P(Reactor, AStopMayRaceTheCompletion) {
  runtime runtime(options());
  pipe_ends pipe;
  std::string text(1, ' ');
  int stopped = 0;
  std::atomic<std::stop_source*> current = nullptr;
  std::atomic<int> requested = 0;
  std::jthread stopper([&](const std::stop_token& end) {
    while (!end.stop_requested())
      if (auto* stop = current.exchange(nullptr)) {
        stop->request_stop();
        ++requested;
      }
  });
  for (int i = 0; i < 5'000; ++i) {
    std::stop_source stop;
    auto call = make_call(read_call(pipe.read_end, text));
    current = &stop;
    if (i % 2 == 0) pipe.put("x");
    auto result = sync_wait(runtime, std::move(call), stop.get_token());
    ASSERT_TRUE(result == 1 || result == -ECANCELED) << result;
    if (result == -ECANCELED) {
      ++stopped;
      if (i % 2 == 0) {
        ASSERT_EQ(read(pipe.read_end, text.data(), 1), 1);
      }
    }
    while (requested <= i) std::this_thread::yield();
    std::this_thread::yield();
  }
  EXPECT_GE(stopped, 2'500);
}

// How many threads copy and wait for the thread `reactor`: those of the kernel's, which it shows
// among ours, or helpers.
static int workers_of(pid_t reactor) {
  auto of_kernel = "iou-wrk-" + std::to_string(reactor);
  int count = 0;
  for (auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(thread.path() / "comm"), name);
    count += name == of_kernel || name == "lade-helper";
  }
  return count;
}

TEST_P(Reactor, AReadMarkedApartRunsOnAnotherThread) {
  temp_dir dir;
  auto path = dir.write("file", std::string(1'000'000, 'x'));
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  runtime runtime(options(1));
  pid_t reactor = 0;
  run_on_reactor(runtime, [&] { reactor = gettid(); });
  while (workers_of(reactor) > 0) std::this_thread::yield();  // those of earlier tests that end
  std::string text(1'000'000, ' ');
  auto apart = read_call(fd, text);
  apart.apart = true;
  EXPECT_EQ(sync_wait(runtime, make_call(apart)), 1'000'000);
  EXPECT_EQ(workers_of(reactor), 1);
  close(fd);
}

// Computes for longer than a step may take.
static void compute_for_long() {
  auto used = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  auto end = used() + detail::activity::allowed * 3 / 2;
  while (used() < end) {}
}

TEST_P(Reactor, AStepThatRunsOthersIsStillWatched) {
  runtime runtime(options(1));
  std::vector<detail::activity::step> long_steps;
  run_on_reactor(runtime, [&] {
    auto& reactor = runtime.reactor();
    detail::name_step("outer", 0);
    reactor.post({[](void*) noexcept { detail::name_step("inner", 0); }, nullptr});
    reactor.run_some();
    for (int i = 0; i < 100 && long_steps.empty(); ++i) {  // the watchdog may get no CPU meanwhile
      compute_for_long();
      long_steps = reactor.current().take_long();
    }
  });
  ASSERT_EQ(long_steps.size(), 1u);
  EXPECT_STREQ(long_steps[0].doing, "outer");
}

TEST_P(Reactor, ARuntimeEndsThatWasNeverUsed) { runtime runtime(options()); }

TEST_P(Reactor, WithoutARuntimeAwaitingIsAnError) {
  EXPECT_THAT([] { sync_wait(make_call(open_call("/dev/null"))); },
              ThrowsMessage<error>(HasSubstr("awaited outside of a runtime")));
}

TEST_P(Reactor, DescribesItself) {
  auto text = runtime(options(3)).describe();
  EXPECT_THAT(text, HasSubstr("3 threads"));
  EXPECT_THAT(text, HasSubstr(GetParam() == reactor_kind::fallback ? "epoll" : "io_uring (Linux"));
}

class ReactorChoice : public testing::Test {
 protected:
  ~ReactorChoice() override { unsetenv("LADE_REACTOR"); }
};

TEST_F(ReactorChoice, TheEnvironmentDecidesWhereTheProgramDoesNot) {
  setenv("LADE_REACTOR", "fallback", 1);
  EXPECT_THAT(runtime().describe(), HasSubstr("fallback"));
}

TEST_F(ReactorChoice, AnUnknownNameInTheEnvironmentIsAnError) {
  setenv("LADE_REACTOR", "kqueue", 1);
  EXPECT_THAT([] { runtime(); },
              ThrowsMessage<error>(
                  HasSubstr("read LADE_REACTOR: expected io_uring or fallback, got kqueue")));
}

}  // namespace lade::reactor_test
