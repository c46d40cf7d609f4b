#include <lade/scope.hpp>

#include <thread>

namespace lade {

scope::scope(const context& surroundings) : surroundings_(surroundings) {
  surroundings_.stop = stop_.get_token();
  if (surroundings.stop.stop_possible())
    on_parent_stop_.emplace(surroundings.stop, pass_on_stop{*this});
}

scope::~scope() {
  if (all_ended()) return;
  stop();
  while (!all_ended()) {
    if (detail::this_executor) detail::this_executor->run_some();
    std::this_thread::yield();
  }
}

bool scope::all_ended() {
  std::lock_guard lock(mutex_);
  return live_ == 0;
}

void scope::child_ended(std::exception_ptr failure) noexcept {
  bool first_failure = false;
  if (failure) {
    std::lock_guard lock(mutex_);
    first_failure = !failure_;
    if (first_failure) failure_ = std::move(failure);
  }
  if (first_failure) stop();
  detail::wait_list woken;
  {
    std::lock_guard lock(mutex_);
    if (--live_ == 0) woken = joining_.settle_all();
  }
  woken.resume_all();
}

}  // namespace lade
