#include <lade/detail/reactor.hpp>

#include <cerrno>

#include <pthread.h>

namespace lade::detail {

void operation_queue::push(io_operation& last, io_operation::status progress) noexcept {
  last.progress = progress;
  last.previous = last_;
  last.next = nullptr;
  (last_ ? last_->next : first_) = &last;
  last_ = &last;
}

io_operation* operation_queue::pop() noexcept {
  auto* first = first_;
  if (first) remove(*first);
  return first;
}

void operation_queue::remove(io_operation& member) noexcept {
  (member.previous ? member.previous->next : first_) = member.next;
  (member.next ? member.next->previous : last_) = member.previous;
}

bool operation_queue::contains(const io_operation& operation) const noexcept {
  for (auto* member = first_; member; member = member->next)
    if (member == &operation) return true;
  return false;
}

void reactor::post(job work) {
  // Wakes under the mutex: once it is released, the work may have ended the reactor. The loop sets
  // asleep_ before it looks at posted_ for the last time. Whoever posts later sees it.
  std::lock_guard lock(mutex_);
  posted_.push_back(work);
  if (this_executor != this && asleep_ && asleep_.exchange(false)) wake();
}

void reactor::start_thread() {
  thread_ = std::thread(&reactor::loop, this);
  pthread_setname_np(thread_.native_handle(), "lade-reactor");
}

void reactor::stop_thread() {
  if (!thread_.joinable()) return;
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
    if (!idle || !done_.empty())
      turn(clock::time_point::min());
    else
      turn(timers_.size() > 1 ? timers_[1]->deadline : clock::time_point::max());
    asleep_ = false;
    complete_done();
  }
}

bool reactor::run_some() {
  run_posted();
  fire_timers();
  turn(clock::time_point::min());
  bool some = !done_.empty();
  complete_done();
  return some;
}

void reactor::submit(io_operation& operation) noexcept {
  ++in_flight_;
  submitted_.push(operation, io_operation::status::queued);
}

void reactor::cancel(io_operation& operation) noexcept {
  if (operation.progress == io_operation::status::queued) {
    submitted_.remove(operation);
    finish(operation, -ECANCELED);
  } else if (operation.progress == io_operation::status::begun) {
    cancel_begun(operation);
  }
}

void reactor::finish(io_operation& operation, std::int64_t result) noexcept {
  operation.result = result;
  done_.push(operation, io_operation::status::done);
}

void reactor::complete_done() {
  while (auto* operation = done_.pop()) {
    --in_flight_;
    operation->completed(*operation);
  }
}

// Runs what had been posted when it was called. A job may call run_some, which then goes on here.
void reactor::run_posted() {
  {
    std::lock_guard lock(mutex_);
    running_.insert(running_.end(), posted_.begin(), posted_.end());
    posted_.clear();
  }
  while (!running_.empty()) {
    auto next = running_.front();
    running_.pop_front();
    next();
  }
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
