#include <lade/detail/common/later.hpp>
#include <lade/detail/runtime/alarm.hpp>
#include <lade/runtime.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

namespace lade::detail {

limited_time::limited_time(std::chrono::nanoseconds limit, clock::time_point now,
                           std::chrono::nanoseconds waited) noexcept
    : limit_(std::max(limit, std::chrono::nanoseconds())), begun_(now), waited_(waited) {}

std::chrono::nanoseconds limited_time::left(clock::time_point now,
                                            std::chrono::nanoseconds waited) const noexcept {
  return limit_ - (now - begun_ - (waited - waited_));
}

clock::time_point limited_time::next_look(clock::time_point now,
                                          std::chrono::nanoseconds left) const noexcept {
  return now + std::max<std::chrono::nanoseconds>(
                   {left, limit_ / 16, std::chrono::nanoseconds(std::chrono::milliseconds(1))});
}

// The part of an alarm that a reactor may still use when the alarm is gone. set() posts begin();
// cancel() posts end(), unless the timer is not begun or has rung. The mutex guards the state and
// the use of the context, which may be gone after cancel(). The timer itself, and kept_ after
// set(), belong to the thread of the reactor.
class alarm::shared_timer : private timer {
 public:
  shared_timer(const context& execution, std::chrono::nanoseconds limit, clock::time_point now,
               std::stop_source late)
      : execution_(execution),
        where_(execution.runtime->reactor()),
        time_(limit, now, waited_for_memory(execution, now)),
        late_(std::move(late)) {
    deadline = later(now, limit);
    fired = [](timer& self) noexcept { static_cast<shared_timer&>(self).look(); };
  }

  void set(std::shared_ptr<shared_timer> self) noexcept {
    kept_ = std::move(self);
    run_there<&shared_timer::begin>();
  }

  void cancel() noexcept {
    {
      std::lock_guard lock(mutex_);
      const bool was_set = std::exchange(state_, state::cancelled) == state::set;
      if (!was_set) return;
    }
    run_there<&shared_timer::end>();
  }

  bool rang() const {
    std::lock_guard lock(mutex_);
    return state_ == state::rang;
  }

 private:
  enum class state : unsigned char { posted, set, rang, cancelled };

  // Calls a member function on the thread of the reactor.
  template <auto Function>
  void run_there() noexcept {
    job call = {[](void* self) noexcept { (static_cast<shared_timer*>(self)->*Function)(); }, this};
    if (where_.is_current())
      call();
    else
      where_.post(call);
  }

  void begin() noexcept {
    std::unique_lock lock(mutex_);
    if (state_ == state::cancelled) {
      lock.unlock();
      return end();
    }
    state_ = state::set;
    where_.start(*this);
  }

  void end() noexcept {
    where_.remove(*this);
    kept_.reset();  // may destroy this
  }

  void look() noexcept {
    std::shared_ptr<shared_timer> self;
    {
      std::lock_guard lock(mutex_);
      if (state_ == state::cancelled) return;  // end() follows
      auto now = clock::now();
      auto left = time_.left(now, waited_for_memory(execution_, now));
      if (left.count() > 0) {
        deadline = time_.next_look(now, left);
        return where_.start(*this);
      }
      state_ = state::rang;
      self = std::move(kept_);
    }
    late_.request_stop();
  }

  const context& execution_;
  reactor& where_;
  const limited_time time_;
  std::stop_source late_;
  std::shared_ptr<shared_timer> kept_;  // keeps this alive for the reactor
  mutable std::mutex mutex_;
  state state_ = state::posted;
};

alarm::alarm(const context& execution, std::chrono::nanoseconds limit)
    : timer_(std::make_shared<shared_timer>(execution, limit, clock::now(), late_)),
      on_outer_stop_(execution.stop, pass_on_stop{*this}) {
  timer_->set(timer_);
}

alarm::~alarm() { timer_->cancel(); }

bool alarm::rang() const { return timer_->rang(); }

}  // namespace lade::detail
