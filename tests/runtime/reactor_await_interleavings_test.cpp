// Every order in which a coroutine that waits for a reactor, the reactor, the end of the work and a
// stop meet: see coroutines/interleavings_test.cpp.

#include <lade/context.hpp>
#include <lade/detail/coroutines/mutex.hpp>
#include <lade/detail/runtime/operation.hpp>
#include <lade/detail/runtime/reactor.hpp>
#include <lade/reactor_service.hpp>
#include <lade/runtime.hpp>
#include <lade/trace.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../support/interleavings.hpp"
#include "../support/started.hpp"

namespace lade {

using test::in_all_orders_of_atomics;
using test::interleaving;

// A reactor whose thread is one of the test. It has one operation or timer at a time, which ends
// when the test calls end_work().
class manual_reactor final : public detail::reactor {
 public:
  // The thread of the reactor, until the coroutine has resumed. Calls `first` before its loop.
  void work(const std::function<void()>& first = [] {}) {
    detail::this_executor = this;
    first();
    while (!resumed_) {
      interleaving::wait_while(idle_);
      for (auto& each : std::exchange(jobs_, {})) each();
      bool never = false;
      interleaving::wait_while(never);  // jobs that are posted now run after the completions
      complete();
      update();
    }
    detail::this_executor = nullptr;
  }

  // The system call returns 5, or the deadline passes.
  void end_work() {
    ended_ = true;
    update();
  }

  // Called by the coroutine when it has resumed: nothing may refer to its awaiter any more.
  void record_resumption() {
    EXPECT_FALSE(resumed_);
    EXPECT_TRUE(jobs_.empty());
    EXPECT_FALSE(operation_ || timer_);
    resumed_ = true;
    update();
  }
  bool resumed() const noexcept { return resumed_; }

  std::string describe() const override { return "manual"; }
  void close(int) noexcept override {}

 private:
  friend class detail::reactor;

  void add(detail::job work) {
    std::lock_guard lock(mutex_);
    EXPECT_FALSE(resumed_);
    jobs_.push_back(work);
    update();
  }

  void complete() {
    if (timer_ && ended_) {
      auto* fired = std::exchange(timer_, nullptr);
      fired->fired(*fired);
    }
    if (operation_ && (ended_ || cancelled_)) {
      auto* completed = std::exchange(operation_, nullptr);
      completed->result = ended_ ? 5 : -ECANCELED;
      completed->completed(*completed);
    }
  }

  void update() noexcept {
    bool has_work = ((operation_ || timer_) && ended_) || (operation_ && cancelled_);
    idle_ = jobs_.empty() && !has_work && !resumed_;
  }

  void turn(detail::clock::time_point) noexcept override {}
  void cancel_begun(detail::io_operation&) noexcept override {}
  void wake() noexcept override {}

  detail::mutex mutex_;
  std::vector<detail::job> jobs_;
  detail::io_operation* operation_ = nullptr;
  detail::timer* timer_ = nullptr;
  bool cancelled_ = false;
  bool ended_ = false;
  bool resumed_ = false;
  bool idle_ = true;
};

// The runtime of these tests has nothing but a manual_reactor.
namespace detail {

static manual_reactor& manual(reactor& of) noexcept { return static_cast<manual_reactor&>(of); }

reactor::reactor() = default;
reactor::~reactor() = default;
void reactor::post(job work) noexcept { manual(*this).add(work); }
bool reactor::run_some() noexcept { return false; }
void reactor::submit(io_operation& operation) noexcept {
  EXPECT_TRUE(is_current());
  manual(*this).operation_ = &operation;
}
void reactor::cancel(io_operation&) noexcept {
  EXPECT_TRUE(is_current());
  manual(*this).cancelled_ = true;
}
void reactor::start(timer& deadline) noexcept {
  EXPECT_TRUE(is_current());
  manual(*this).timer_ = &deadline;
}
void reactor::remove(timer&) noexcept {
  EXPECT_TRUE(is_current());
  manual(*this).timer_ = nullptr;
}
reactor* current_reactor() noexcept { return static_cast<reactor*>(this_executor); }

watchdog::~watchdog() = default;

}  // namespace detail

reactor_service::~reactor_service() = default;

struct thread_pool::state {};
thread_pool::~thread_pool() = default;
void thread_pool::post(detail::job) noexcept {}
bool thread_pool::run_some() noexcept { return false; }
bool thread_pool::has_nearer(unsigned) const noexcept { return false; }
bool thread_pool::has_idle_thread() const noexcept { return false; }

runtime::runtime(const runtime_options&) : memory_(0), kind_(), process_(0) {
  reactors_.push_back(std::make_unique<manual_reactor>());
}
runtime::~runtime() = default;
detail::reactor& runtime::reactor() noexcept { return *reactors_[0]; }

void trace::add_io(std::string_view, std::string_view, detail::clock::time_point,
                   detail::clock::time_point, std::int64_t) {}

// A coroutine of the runtime. It is no task: the start of a task is a separate race.
struct waiting_coroutine {
  struct promise_type : detail::promise_base {
    waiting_coroutine get_return_object() noexcept {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };

  void start(const context& execution) const {
    coroutine.promise().context = &execution;
    coroutine.resume();
  }

  std::coroutine_handle<promise_type> coroutine;
};

static waiting_coroutine await_operation(manual_reactor& where, int& result) {
  detail::io_operation description;
  auto returned = co_await detail::operation(description);
  where.record_resumption();
  result = static_cast<int>(returned);
}

static waiting_coroutine await_sleep(manual_reactor& where, int& result) {
  bool slept = co_await detail::sleep_until(detail::clock::time_point::max());
  where.record_resumption();
  result = slept ? 5 : -ECANCELED;
}

// The results of the coroutine in all orders.
struct outcomes {
  int ended = 0;
  int stopped = 0;
};

// Whether the coroutine is stopped, and whether it starts on the reactor's thread.
struct conditions {
  bool stops = false;
  bool starts_on_reactor = false;
};

// Runs the coroutine, the end of its work and perhaps a stop in all orders.
template <class Coroutine>
static outcomes resume_in_all_orders(Coroutine coroutine, conditions with) {
  outcomes seen;
  in_all_orders_of_atomics([&](interleaving& order) {
    runtime where;
    auto& reactor = static_cast<manual_reactor&>(where.reactor());
    std::stop_source stop;
    int result = 0;
    context execution;
    execution.runtime = &where;
    if (with.stops) execution.stop = stop.get_token();
    auto waiting = coroutine(reactor, result);
    auto start = [&] { waiting.start(execution); };
    std::vector<std::function<void()>> threads{[&] { reactor.end_work(); }};
    if (with.starts_on_reactor) {
      threads.push_back([&] { reactor.work(start); });
    } else {
      threads.push_back(start);
      threads.push_back([&] { reactor.work(); });
    }
    if (with.stops) threads.push_back([&] { stop.request_stop(); });
    order.run(threads);
    EXPECT_TRUE(reactor.resumed());
    EXPECT_TRUE(result == 5 || result == -ECANCELED);
    ++(result == 5 ? seen.ended : seen.stopped);
  });
  return seen;
}

TEST(ReactorAwaitInterleavings, ACoroutineResumesOnceAfterItsOperation) {
  EXPECT_EQ(resume_in_all_orders(await_operation, {}).stopped, 0);
}

TEST(ReactorAwaitInterleavings, AStoppedOperationResumesItsCoroutineOnceAfterItsEnd) {
  auto seen = resume_in_all_orders(await_operation, {.stops = true});
  EXPECT_GT(seen.ended, 0);
  EXPECT_GT(seen.stopped, 0);
}

TEST(ReactorAwaitInterleavings, AStoppedOperationOfTheReactorsThreadResumesItsCoroutineOnce) {
  auto seen = resume_in_all_orders(await_operation, {.stops = true, .starts_on_reactor = true});
  EXPECT_GT(seen.ended, 0);
  EXPECT_GT(seen.stopped, 0);
}

TEST(ReactorAwaitInterleavings, AStoppedSleepResumesItsCoroutineOnceAfterItsEnd) {
  auto seen = resume_in_all_orders(await_sleep, {.stops = true});
  EXPECT_GT(seen.ended, 0);
  EXPECT_GT(seen.stopped, 0);
}

}  // namespace lade
