#include <lade/error.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/task.hpp>
#include <lade/wait_list.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <coroutine>
#include <mutex>
#include <stop_token>

#include "../support/coroutines.hpp"

namespace lade::wait_list_test {

using testing_support::code_of;

// A door that lets a number of coroutines through, in the order of their arrival.
class door {
 public:
  class awaiter : private waiter {
   public:
    explicit awaiter(door& of) noexcept : of_(of) {}
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> coroutine) {
      return park(coroutine, of_.mutex_, of_.waiters_, [this] { return of_.take(); });
    }
    void await_resume() { finish("wait at the door"); }

   private:
    door& of_;
  };

  awaiter passed() noexcept { return awaiter(*this); }

  void let_through(int count) {
    wait_list woken;
    {
      std::lock_guard lock(mutex_);
      for (; count > 0 && !waiters_.empty(); --count) woken.push_back(*waiters_.settle_first());
      free_ += count;
    }
    woken.resume_all();
  }

  bool has_waiters() {
    std::lock_guard lock(mutex_);
    return !waiters_.empty();
  }

 private:
  bool take() noexcept { return free_ > 0 && free_-- > 0; }

  std::mutex mutex_;
  wait_list waiters_;  // guarded by mutex_, as free_
  int free_ = 0;
};

static task<> pass(door& through, std::atomic<int>& passed) {
  co_await through.passed();
  ++passed;
}
static task<> join(scope& children) { co_await children.join(); }

TEST(WaitList, AWaiterHoldsItsPermitWhenItResumes) {
  runtime where({.threads = 2});
  door through;
  std::atomic<int> passed = 0;
  through.let_through(1);
  scope children(context{.runtime = &where, .home = &where.pool()});
  for (int i = 0; i < 100; ++i) children.start(pass(through, passed));
  for (int i = 0; i < 33; ++i) through.let_through(3);
  sync_wait(join(children));
  EXPECT_EQ(passed, 100);
}

TEST(WaitList, AStopEndsAWait) {
  runtime where({.threads = 1});
  door through;
  std::atomic<int> passed = 0;
  std::stop_source source;
  source.request_stop();
  auto wait = [&] { sync_wait(where, pass(through, passed), source.get_token()); };
  EXPECT_EQ(code_of(wait), errc::stopped);
  EXPECT_FALSE(through.has_waiters());
  through.let_through(1);
  sync_wait(where, pass(through, passed));  // the permit of nobody who was stopped
  EXPECT_EQ(passed, 1);
}

}  // namespace lade::wait_list_test
