#include <lade/detail/waiter.hpp>
#include <lade/error.hpp>

namespace lade::detail {

void wait_list::push_back(waiter& added) noexcept {
  added.previous_ = last_;
  added.next_ = nullptr;
  (last_ ? last_->next_ : first_) = &added;
  last_ = &added;
}

void wait_list::remove(waiter& gone) noexcept {
  (gone.previous_ ? gone.previous_->next_ : first_) = gone.next_;
  (gone.next_ ? gone.next_->previous_ : last_) = gone.previous_;
}

waiter* wait_list::settle_first() noexcept {
  auto* first = first_;
  if (!first) return nullptr;
  remove(*first);
  first->linked_ = false;
  first->settled_ = true;
  return first;
}

wait_list wait_list::settle_all() noexcept {
  wait_list all;
  while (auto* first = settle_first()) all.push_back(*first);
  return all;
}

void wait_list::resume_all() {
  for (auto* each = first_; each;) {
    auto* next = each->next_;  // read first: a resumed waiter is gone
    each->resume();
    each = next;
  }
}

void waiter::watch_stop(const std::stop_token& token) {
  if (token.stop_possible()) on_stop_.emplace(token, stop_request{*this});
}

// On the thread that requests the stop, perhaps while on_stop_ is still being made.
void waiter::stop() noexcept {
  {
    std::lock_guard lock(*mutex_);
    if (settled_) return;
    settled_ = stopped_ = true;
    if (!linked_) return;  // it has not parked yet and now will not
    list_->remove(*this);
  }
  resume();
}

void waiter::throw_stopped(std::string_view doing) { throw error(errc::stopped, doing); }

}  // namespace lade::detail
