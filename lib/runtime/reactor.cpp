#include <lade/detail/runtime/start_thread.hpp>

#include <lade/detail/runtime/reactor.hpp>
#include <lade/reactor_service.hpp>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>
#include <exception>
#include <future>
#include <iterator>
#include <utility>

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

void timer_heap::insert(timer& added) noexcept {
  added.child = added.previous = added.next = nullptr;
  root_ = meld(root_, &added);
}

void timer_heap::remove(timer& member) noexcept {
  auto* children = meld_all(member.child);
  if (root_ == &member) {
    root_ = children;
    return;
  }
  auto*& to_member =
      member.previous->child == &member ? member.previous->child : member.previous->next;
  to_member = member.next;
  if (member.next) member.next->previous = member.previous;
  root_ = meld(root_, children);
}

// Melds two heaps, and returns the root with the earlier deadline.
timer* timer_heap::meld(timer* a, timer* b) noexcept {
  if (!a || !b) return a ? a : b;
  if (b->deadline < a->deadline) std::swap(a, b);
  b->previous = a;
  b->next = a->child;
  if (a->child) a->child->previous = b;
  a->child = b;
  return a;
}

// Melds siblings into one heap: first in pairs from the front, then all pairs from the back. These
// two passes give removal its amortized logarithmic time.
timer* timer_heap::meld_all(timer* first) noexcept {
  auto take = [](timer*& from) {
    auto* taken = from;
    if (!taken) return taken;
    from = taken->next;
    taken->previous = taken->next = nullptr;
    return taken;
  };
  timer* pairs = nullptr;
  while (first) {
    auto* one = take(first);
    auto* pair = meld(one, take(first));
    pair->next = pairs;
    pairs = pair;
  }
  timer* all = nullptr;
  while (auto* pair = take(pairs)) all = meld(all, pair);
  return all;
}

reactor::reactor() = default;
reactor::~reactor() = default;

void reactor::post(job work) noexcept {
  std::unique_lock lock(mutex_);
  posted_.make_room(lock);
  posted_.push(work);
  wake_from_post();
}

// Under the mutex: after its release, the job may have destroyed the reactor.
void reactor::wake_from_post() noexcept {
  if (this_executor != this && asleep_ && asleep_.exchange(false)) wake();
}

void reactor::post(timer& deadline) noexcept {
  std::lock_guard lock(mutex_);
  deadline.posted = true;
  deadline.previous = nullptr;
  deadline.next = posted_timers_;
  if (posted_timers_) posted_timers_->previous = &deadline;
  posted_timers_ = &deadline;
  wake_from_post();
}

bool reactor::withdraw(timer& deadline) noexcept {
  std::lock_guard lock(mutex_);
  if (!std::exchange(deadline.posted, false)) return false;
  if (deadline.next) deadline.next->previous = deadline.previous;
  (deadline.previous ? deadline.previous->next : posted_timers_) = deadline.next;
  return true;
}

// With the mutex held, so that a timer is either posted or started for withdraw().
void reactor::start_posted_timers() noexcept {
  for (auto* each = std::exchange(posted_timers_, nullptr); each;) {
    auto* next = each->next;
    each->posted = false;
    start(*each);
    each = next;
  }
}

void reactor::start_thread() {
  std::promise<void> entering;
  auto entered = entering.get_future();
  thread_ = detail::start_thread("a reactor", [this, entered = std::move(entering)]() mutable {
    try {
      enter_thread();
    } catch (...) {
      return entered.set_exception(std::current_exception());
    }
    entered.set_value();
    loop();
  });
  pthread_setname_np(thread_.native_handle(), "lade-reactor");
  try {
    entered.get();
  } catch (...) {
    thread_.join();
    throw;
  }
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

void reactor::loop() noexcept {
  this_executor = this;
  activity_.enter_thread();
  while (true) {
    run_posted();
    fire_timers();
    end_turn_of_services();
    activity_.wake_now();
    asleep_ = true;
    bool idle = true;
    bool ending = false;
    {
      std::lock_guard lock(mutex_);
      idle = posted_.empty() && !posted_timers_;
      ending = idle && ending_;
    }
    if (ending && services_.empty()) return;
    if (ending) {
      end_services();
      idle = false;  // the next turn begins operations that the services have submitted
    }
    if (!idle || !done_.empty())
      turn(clock::time_point::min());
    else
      turn(timers_.first() ? timers_.first()->deadline : clock::time_point::max());
    asleep_ = false;
    complete_done();
    if (busy_ && ++turns_ % 16 == 0) measure_load();
  }
}

static std::chrono::nanoseconds reactor_cpu_time() noexcept {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

// The load is CPU time, not wall-clock time: if the thread lacks a CPU, another reactor would not
// help.
void reactor::measure_load() noexcept {
  constexpr auto period = std::chrono::milliseconds(5);
  auto now = clock::now();
  if (now - measured_at_ < period) return;
  auto cpu = reactor_cpu_time();
  bool busy = (cpu - measured_cpu_) * 10 > (now - measured_at_) * 8;
  measured_at_ = now;
  measured_cpu_ = cpu;
  if (busy) record_busy();
}

// Called within a step, which is interrupted.
bool reactor::run_some() noexcept {
  activity::interruption interruption(activity_);
  run_posted();
  fire_timers();
  end_turn_of_services();
  activity_.wake_now();
  turn(clock::time_point::min());
  bool some = !done_.empty();
  complete_done();
  return some;
}

void reactor::submit(io_operation& operation) noexcept {
  if (!operation.background) ++in_flight_;
  submitted_.push(operation, io_operation::status::queued);
}

void reactor::cancel(io_operation& operation) noexcept {
  if (operation.progress == io_operation::status::queued) {
    submitted_.remove(operation);
    finish(operation, -ECANCELED);
  } else if (operation.progress == io_operation::status::started) {
    cancel_begun(operation);
  }
}

void reactor::finish(io_operation& operation, std::int64_t result) noexcept {
  operation.result = result;
  done_.push(operation, io_operation::status::done);
}

int reactor::wait_milliseconds(clock::time_point deadline) noexcept {
  if (deadline == clock::time_point::max()) return -1;
  if (deadline == clock::time_point::min()) return 0;
  auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX));
}

void reactor::complete_done() noexcept {
  while (auto* operation = done_.pop()) {
    if (!operation->background) --in_flight_;
    activity_.begin();
    operation->completed(*operation);
    activity_.end();
  }
}

// Runs the jobs that were posted before the call. A job may call run_some(), which continues with
// the rest of taken_.
void reactor::run_posted() noexcept {
  run_taken();
  {
    std::lock_guard lock(mutex_);
    std::swap(taken_, posted_);
    start_posted_timers();
  }
  run_taken();
}

void reactor::run_taken() noexcept {
  while (!taken_.empty()) {
    auto next = taken_.pop();
    activity_.begin();
    next();
    activity_.end();
  }
}

void reactor::fire_timers() noexcept {
  if (!timers_.first()) return;
  auto now = clock::now();
  while (timers_.first() && timers_.first()->deadline <= now) {
    auto& due = *timers_.first();
    remove(due);
    activity_.begin();
    due.fired(due);
    activity_.end();
  }
}

polled& reactor::add_poll() {
  auto& added = polls_.emplace_back();
  added.background = true;
  added.where = this;
  added.self = std::prev(polls_.end());
  return added;
}

reactor_service* reactor::find_service(const void* key) const noexcept {
  for (auto& [of, service] : services_)
    if (of == key) return service.get();
  return nullptr;
}

reactor_service& reactor::add_service(const void* key, std::unique_ptr<reactor_service> added) {
  return *services_.emplace_back(key, std::move(added)).second;
}

// Iterates by index, because a coroutine that a service resumes may add services.
void reactor::end_turn_of_services() noexcept {
  for (std::size_t i = 0; i < services_.size(); ++i) {
    auto& service = *services_[i].second;
    activity_.begin();
    service.end_turn();
    activity_.end();
  }
}

void reactor::end_services() noexcept {
  while (!services_.empty()) services_.pop_back();
}

reactor* current_reactor() noexcept {
  return this_activity ? static_cast<reactor*>(this_executor) : nullptr;
}

void reactor::start(timer& deadline) noexcept {
  timers_.insert(deadline);
  deadline.started = true;
}

void reactor::remove(timer& deadline) noexcept {
  if (std::exchange(deadline.started, false)) timers_.remove(deadline);
}

}  // namespace lade::detail
