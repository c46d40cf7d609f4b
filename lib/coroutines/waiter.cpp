#include <lade/detail/coroutines/waiter.hpp>
#include <lade/error.hpp>

#include <utility>

namespace lade::detail {

wait_list wait_list::settle_all() noexcept {
  wait_list all;
  while (auto* first = settle_first()) all.push_back(*first);
  return all;
}

void wait_list::append(const wait_list& added) noexcept {
  if (added.empty()) return;
  added.first_->previous_ = last_;
  (last_ ? last_->next_ : first_) = added.first_;
  last_ = added.last_;
}

void wait_list::resume_all() {
  for (auto* each = std::exchange(*this, {}).first_; each;) {
    auto* next = each->next_;  // read first: a resumed waiter is gone
    each->resume();
    each = next;
  }
}

void wait_list::resume_all_later() {
  for (auto* each = std::exchange(*this, {}).first_; each;) {
    auto* next = each->next_;
    each->resume_later();
    each = next;
  }
}

std::size_t wait_list::size() const noexcept {
  std::size_t waiters = 0;
  for (auto* each = first_; each; each = each->next_) ++waiters;
  return waiters;
}

// On the thread that requests the stop, perhaps while on_stop_ is still being made.
void waiter::stop() noexcept {
  {
    std::lock_guard lock(*mutex_);
    if (progress_ == progress::settled) return;
    bool parked = progress_ == progress::parked;
    progress_ = progress::stopped;
    if (!parked) return;  // and now will not park
    list_->remove(*this);
  }
  resume();
}

void waiter::throw_stopped(std::string_view doing) { throw error(errc::stopped, doing); }

}  // namespace lade::detail
