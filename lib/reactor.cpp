#include <lade/detail/reactor.hpp>

#include <pthread.h>

namespace lade::detail {

void reactor::post(job work) {
  {
    std::lock_guard lock(mutex_);
    posted_.push_back(work);
  }
  if (this_executor != this && asleep_.exchange(false)) wake();
}

void reactor::start_thread() {
  thread_ = std::thread(&reactor::loop, this);
  pthread_setname_np(thread_.native_handle(), "lade-reactor");
}

void reactor::stop_thread() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake();
  thread_.join();
}

void reactor::loop() {
  this_executor = this;
  enter_thread();
  while (true) {
    run_posted();
    fire_timers();
    asleep_ = true;
    bool idle = true;
    {
      std::lock_guard lock(mutex_);
      idle = posted_.empty();
      if (idle && ending_) return;
    }
    if (!idle)
      turn(clock::time_point::min());
    else
      turn(timers_.size() > 1 ? timers_[1]->deadline : clock::time_point::max());
    asleep_ = false;
  }
}

void reactor::run_posted() {
  {
    std::lock_guard lock(mutex_);
    running_.swap(posted_);
  }
  for (auto& work : running_) work();
  running_.clear();
}

void reactor::fire_timers() {
  if (timers_.size() == 1) return;
  auto now = clock::now();
  while (timers_.size() > 1 && timers_[1]->deadline <= now) {
    auto& due = *timers_[1];
    remove(due);
    due.fired(due);
  }
}

void reactor::start(timer& deadline) {
  deadline.place = timers_.size();
  timers_.push_back(&deadline);
  sift(deadline.place);
}

void reactor::remove(timer& deadline) {
  auto place = deadline.place;
  if (place == 0) return;
  deadline.place = 0;
  auto* last = timers_.back();
  timers_.pop_back();
  if (last == &deadline) return;
  timers_[place] = last;
  last->place = place;
  sift(place);
}

// Restores the heap's order for the one timer that may be out of it.
void reactor::sift(std::size_t place) {
  auto earlier = [this](std::size_t a, std::size_t b) {
    return timers_[a]->deadline < timers_[b]->deadline;
  };
  auto exchange = [this](std::size_t a, std::size_t b) {
    std::swap(timers_[a], timers_[b]);
    timers_[a]->place = a;
    timers_[b]->place = b;
  };
  for (; place > 1 && earlier(place, place / 2); place /= 2) exchange(place, place / 2);
  for (auto child = 2 * place; child < timers_.size(); child = 2 * place) {
    if (child + 1 < timers_.size() && earlier(child + 1, child)) ++child;
    if (!earlier(child, place)) return;
    exchange(place, child);
    place = child;
  }
}

}  // namespace lade::detail
