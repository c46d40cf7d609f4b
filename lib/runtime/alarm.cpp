#include <lade/detail/runtime/alarm.hpp>
#include <lade/runtime.hpp>
#include <lade/support/later.hpp>

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

clock::time_point limited_time::next_check(clock::time_point now,
                                           std::chrono::nanoseconds left) const noexcept {
  return now + std::max<std::chrono::nanoseconds>(
                   {left, limit_ / 16, std::chrono::nanoseconds(std::chrono::milliseconds(1))});
}

// The part of an alarm that a reactor may still use when the alarm is gone. kept_ is its reference.
//
//   posted ─> set ─> expired
//     │        ╰───> cancelled ─> end() on the reactor
//     ╰─ withdrawn
//
// The mutex of the reactor decides between `set` and withdrawn, mutex_ between expired and
// cancelled. mutex_ also guards the context, which may be gone after cancel().
class alarm::shared_timer : private timer {
 public:
  shared_timer(const context& execution, std::chrono::nanoseconds limit, clock::time_point now,
               std::stop_source late)
      : execution_(execution),
        where_(execution.runtime->reactor()),
        time_(limit, now, waited_for_memory(execution, now)),
        late_(std::move(late)) {
    deadline = support::later(now, limit);
    fired = [](timer& self) noexcept { static_cast<shared_timer&>(self).check(); };
  }

  void set(std::shared_ptr<shared_timer> self) noexcept {
    kept_ = std::move(self);
    if (where_.is_current())
      where_.start(*this);
    else
      where_.post(*this);
  }

  void cancel() noexcept {
    if (where_.withdraw(*this)) return kept_.reset();
    {
      std::lock_guard lock(mutex_);
      if (state_ == state::expired) return;
      state_ = state::cancelled;
    }
    if (where_.is_current())
      end();
    else
      where_.post({[](void* self) noexcept { static_cast<shared_timer*>(self)->end(); }, this});
  }

  bool has_expired() const {
    std::lock_guard lock(mutex_);
    return state_ == state::expired;
  }

 private:
  enum class state : unsigned char { set, expired, cancelled };

  void end() noexcept {
    where_.remove(*this);
    kept_.reset();  // may destroy this
  }

  void check() noexcept {
    std::shared_ptr<shared_timer> self;
    {
      std::lock_guard lock(mutex_);
      if (state_ == state::cancelled) return;  // end() follows
      auto now = clock::now();
      auto left = time_.left(now, waited_for_memory(execution_, now));
      if (left.count() > 0) {
        deadline = time_.next_check(now, left);
        return where_.start(*this);
      }
      state_ = state::expired;
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
  state state_ = state::set;
};

alarm::alarm(const context& execution, std::chrono::nanoseconds limit)
    : timer_(std::make_shared<shared_timer>(execution, limit, clock::now(), late_)),
      on_outer_stop_(execution.stop, pass_on_stop{*this}) {
  timer_->set(timer_);
}

alarm::~alarm() { timer_->cancel(); }

bool alarm::has_expired() const { return timer_->has_expired(); }

}  // namespace lade::detail
