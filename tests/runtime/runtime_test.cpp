#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/sleep.hpp>
#include <lade/sync_wait.hpp>
#include <lade/this_context.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <ranges>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "../support/coroutines.hpp"
#include "../support/reactors.hpp"

namespace lade::runtime_test {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;
using testing_support::code_of;

// Sets an environment variable for a while.
class environment {
 public:
  environment(const char* name, const char* value) : name_(name) {
    if (auto* before = std::getenv(name)) before_ = before;
    setenv(name, value, 1);
  }
  environment(const environment&) = delete;
  ~environment() {
    if (before_)
      setenv(name_, before_->c_str(), 1);
    else
      unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

static task<int> give(int value) { co_return value; }

static task<detail::executor*> go_to(detail::executor& where) {
  co_await continue_on(where);
  co_return detail::this_executor;
}

static task<bool> visit(runtime& home, runtime& other) {
  auto* there = co_await go_to(other.pool());
  co_return there == &other.pool() && detail::this_executor == &home.pool();
}

class Runtime : public testing_support::ReactorTest {};

INSTANTIATE_TEST_SUITE_P(On, Runtime,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         testing_support::reactor_name);

TEST_P(Runtime, SaysWhatItIs) {
  runtime runtime(options(3));
  EXPECT_EQ(runtime.pool().size(), 3u);
  EXPECT_THAT(runtime.describe(), StartsWith("3 threads, "));
  auto* kind = GetParam() == reactor_kind::fallback ? "fallback" : "io_uring";
  EXPECT_THAT(runtime.describe(), HasSubstr(kind));
}

TEST_P(Runtime, SeveralReactorsTakeTurns) {
  auto two = options(1);
  two.reactors = 2;
  runtime runtime(two);
  EXPECT_THAT(runtime.describe(), StartsWith("1 thread, 2 reactors: "));
  EXPECT_NE(&runtime.reactor(), &runtime.reactor());
  EXPECT_NE(&runtime.reactor(0), &runtime.reactor(1));
  detail::reactor* own = nullptr;
  testing_support::run_on_reactor(runtime, [&] { own = &runtime.reactor(); });
  EXPECT_TRUE(own == &runtime.reactor(0) || own == &runtime.reactor(1));
}

TEST_P(Runtime, ThereIsAnotherReactorWhenOneIsBusy) {
  runtime runtime(options(1));
  auto most = std::min(available_cpus(), 16u);
  EXPECT_EQ(&runtime.reactor(0), &runtime.reactor(1));
  for (unsigned i = 0; i < 20; ++i)
    testing_support::run_on_reactor(runtime, [&] { runtime.reactor().record_busy(); });
  for (unsigned i = 1; i < most; ++i) EXPECT_NE(&runtime.reactor(0), &runtime.reactor(i));
  EXPECT_EQ(&runtime.reactor(0), &runtime.reactor(most));
}

TEST_P(Runtime, AsManyReactorsAsWereAskedForStay) {
  auto one = options(1);
  one.reactors = 1;
  runtime runtime(one);
  testing_support::run_on_reactor(runtime, [&] { runtime.reactor().record_busy(); });
  EXPECT_EQ(&runtime.reactor(0), &runtime.reactor(1));
}

static task<std::uint64_t> busy_reader(std::uint64_t number) {
  auto here = co_await this_context();
  auto& own = here.runtime->reactor();
  EXPECT_EQ(here.home, &own);
  EXPECT_EQ(detail::this_executor, &own);
  own.record_busy();
  co_await sleep(std::chrono::nanoseconds(number % 3));
  co_return number;
}

TEST_P(Runtime, WorkersMoveToReactorsThatAreAdded) {
  for (int round = 0; round < 30; ++round) {  // the move itself is a race of two threads
    runtime runtime(options(1));
    auto numbers = from(std::views::iota(std::uint64_t{0}, std::uint64_t{500})) |
                   map(busy_reader, {.concurrency = 8});
    std::uint64_t expected = 0;
    for (auto number : runtime.run(numbers)) EXPECT_EQ(number, expected++);
    EXPECT_EQ(expected, 500u);
    EXPECT_EQ(&runtime.reactor(0) != &runtime.reactor(1), available_cpus() > 1);
  }
}

TEST_P(Runtime, StartsAndEndsWithoutWork) {
  for (int i = 0; i < 20; ++i) runtime runtime(options(2));
}

TEST_P(Runtime, SeveralAreIndependent) {
  runtime first(options(1)), second(options(1));
  EXPECT_EQ(sync_wait(first, give(1)), 1);
  EXPECT_EQ(sync_wait(second, give(2)), 2);
  EXPECT_TRUE(sync_wait(first, visit(first, second)));
  EXPECT_TRUE(sync_wait(second, visit(second, first)));
}

static task<> sleep_long(std::atomic<int>& sleeping) {
  ++sleeping;
  co_await sleep(10min);
}

static task<> start_sleepers(int n, std::atomic<int>& sleeping) {
  scope children(co_await this_context());
  for (int i = 0; i < n; ++i) children.start(sleep_long(sleeping));
  co_await children.join();
}

TEST_P(Runtime, StopsWithWorkInFlight) {
  runtime runtime(options(2));
  std::stop_source source;
  std::atomic<int> sleeping = 0;
  std::jthread stopper([&] {
    while (sleeping < 1000) std::this_thread::yield();
    source.request_stop();
  });
  EXPECT_EQ(
      code_of([&] { sync_wait(runtime, start_sleepers(1000, sleeping), source.get_token()); }),
      errc::stopped);
}

// The exit status of a child process that runs `function`.
template <class F>
static int status_of_child(F function) {
  auto child = fork();
  if (child == 0) _exit(function());
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_P(Runtime, AForkedChildIsRefusedAndTheParentContinues) {
  auto parents = std::make_unique<runtime>(options(1));
  EXPECT_EQ(sync_wait(*parents, give(1)), 1);
  auto status = status_of_child([&parents] {
    auto code = code_of([&] { sync_wait(*parents, give(2)); });
    parents.reset();  // leaves the parent's threads alone
    return code == errc::wrong_thread ? 7 : 1;
  });
  EXPECT_EQ(status, 7);
  EXPECT_EQ(sync_wait(*parents, give(3)), 3);
}

TEST_P(Runtime, ARunInAForkedChildIsRefused) {
  runtime parents(options(1));
  auto one = from(std::vector{7});
  auto status = status_of_child([&] {
    try {
      auto items = parents.run(one);
      return 1;
    } catch (const error& e) {
      auto why = "use a runtime: the process was forked after the runtime was made";
      return e.code() == errc::wrong_thread && e.what() == std::string(why) ? 7 : 2;
    }
  });
  EXPECT_EQ(status, 7);
  EXPECT_EQ(parents.run(one).wait_next(), 7);
}

// Says when it is made and destroyed, and that the runtime then still works.
template <char Name>
class speaking {
 public:
  static inline std::string said;

  explicit speaking(runtime& where) : where_(where) { said += Name; }
  speaking(const speaking&) = delete;
  ~speaking() {
    sync_wait(where_, sleep(1ns));
    speaking<'a'>::said += Name == 'a' ? "A" : "B";
  }

 private:
  runtime& where_;
};

TEST(RuntimeServices, AreMadeOnceAndEndInReverseOrderBeforeTheThreads) {
  {
    runtime runtime({.threads = 1});
    auto& first = runtime.service<speaking<'a'>>();
    runtime.service<speaking<'b'>>();
    EXPECT_EQ(&runtime.service<speaking<'a'>>(), &first);
    EXPECT_EQ(speaking<'a'>::said, "a");
    EXPECT_EQ(speaking<'b'>::said, "b");
  }
  EXPECT_EQ(speaking<'a'>::said, "aBA");
}

struct unmakeable {
  explicit unmakeable(runtime&) { throw error(errc::unsupported, "make a service"); }
};

TEST(RuntimeServices, ThatCannotBeMadeThrowEachTime) {
  runtime runtime({.threads = 1});
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(code_of([&] { runtime.service<unmakeable>(); }), errc::unsupported);
}

TEST(RuntimeEnvironment, ChoosesTheReactor) {
  environment wanted("LADE_REACTOR", "fallback");
  EXPECT_THAT(runtime({.threads = 1}).describe(), HasSubstr("fallback"));
}

TEST(RuntimeEnvironment, AnEmptyChoiceIsIgnored) {
  environment wanted("LADE_REACTOR", "");
  EXPECT_THAT(runtime({.threads = 1}).describe(), StartsWith("1 thread, "));
}

TEST(RuntimeEnvironment, AnUnknownChoiceIsRefusedByName) {
  environment wanted("LADE_REACTOR", "kqueue");
  try {
    runtime runtime({.threads = 1});
    ADD_FAILURE() << runtime.describe();
  } catch (const error& refusal) {
    EXPECT_EQ(refusal.code(), errc::invalid_argument);
    EXPECT_STREQ(refusal.what(), "read LADE_REACTOR: expected io_uring or fallback, got kqueue");
  }
  // Only where the options leave the choice.
  EXPECT_THAT(runtime({.threads = 1, .reactor = reactor_kind::fallback}).describe(),
              HasSubstr("fallback"));
}

TEST(RuntimeDeathTest, DestructionOnOneOfItsThreadsEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto destroy = [](detail::executor& home, runtime* where) {
    home.post({[](void* object) noexcept { delete static_cast<runtime*>(object); }, where});
    while (true) std::this_thread::yield();
  };
  auto on_pool = [&](runtime* where) { destroy(where->pool(), where); };
  auto on_reactor = [&](runtime* where) { destroy(where->reactor(), where); };
  constexpr auto sentence = "lade: a runtime was destroyed on one of its own threads";
  EXPECT_DEATH(on_pool(new runtime({.threads = 1})), sentence);
  EXPECT_DEATH(on_reactor(new runtime({.threads = 1})), sentence);
}

}  // namespace lade::runtime_test
