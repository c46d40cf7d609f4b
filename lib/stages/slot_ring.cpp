#include <lade/detail/stages/slot_ring.hpp>

#include <algorithm>
#include <cassert>
#include <utility>

namespace lade::detail {

slot_ring::slot_ring(const slot_ring_options& options, const buffer_pool& memory,
                     std::shared_ptr<demand> wanted)
    : memory_(memory),
      options_(options),
      wanted_(std::move(wanted)),
      filled_(options.workers > 0 ? options.slots : 0),
      ready_(options.slots),
      places_(options.slots),
      numbers_(options.workers > 0 && options.numbers_slots ? options.slots : 0),
      bytes_(options.bytes != unlimited_bytes ? options.slots : 0),
      most_working_(options.feeders > 1 ? options.feeders : options.workers),
      most_held_(options.slots),
      kept_for_consumer_(options.consumer_owns_slot) {
  free_.reserve(options.slots);
  for (auto slot = options.slots; slot-- > 0;) return_slot(slot);
  if (options.workers == 0 || options.order == item_order::input) return;
  for (std::size_t slot = 0; slot < options.slots; ++slot)
    where_.push_back(others_.insert(others_.end(), slot));
}

slot_ring::~slot_ring() {
  for (auto* waiting : {&feeders_, &consumers_, &workers_})
    waiting->require_empty("a link was destroyed while coroutines wait in it");
  in_flight_ = 0;
  if (counters_) record_depth();
}

std::size_t slot_ring::take_first_slot() noexcept {
  const std::size_t slot = free_.back();
  free_.pop_back();
  kept_for_consumer_ = false;
  return slot;
}

bool slot_ring::settle_feeder(free_awaiter& feeder, listed_waiter*& woken) noexcept {
  auto filled = std::exchange(feeder.slot_, none);
  if (closed_) return true;
  if (filled != none) woken = pass_filled(filled);
  if (input_over_) return true;
  if (!may_begin()) {
    record_missing(capacity() > 0 ? missing::memory : missing::slot);
    return false;
  }
  feeder.slot_ = begin_item();
  return true;
}

bool slot_ring::filled_awaiter::take() {
  std::unique_lock lock(ring_.mutex_);
  wait_list feeders;
  auto* consumer = slot_ == none ? nullptr : ring_.finish_work(*this, feeders);
  if (consumer && ring_.has_work()) {  // another worker may take that work meanwhile
    lock.unlock();
    feeders.resume_all_later();
    if (posts_consumer_ && consumer->has_idle_thread())
      consumer->resume_later();
    else
      consumer->resume_here_or_later();
    lock.lock();
    consumer = nullptr;
  }
  bool park = !ring_.has_work() && !ring_.is_over();
  if (park)
    park_first(ring_.workers_);
  else if (ring_.has_work() && !ring_.closed_)
    ring_.begin_work(*this);
  lock.unlock();
  feeders.resume_all_later();
  if (consumer) consumer->resume_here_or_later();
  return park;
}

bool slot_ring::settle_consumer(done_awaiter& consumer, wait_list& woken) noexcept {
  if (consumer.slot_ != none) return_slot_of_consumer(std::exchange(consumer.slot_, none));
  const bool park = !deliverable() && !drained();
  if (park) {
    begin_consumer_wait();
  } else {
    end_consumer_wait();
    if (deliverable() && !closed_) consumer.slot_ = pop_done();
  }
  claim_feeders(woken);
  return !park;
}

void slot_ring::done_awaiter::end_stoppable_wait() {
  if (has_stopped()) ring_.end_stopped_wait(std::exchange(slot_, none));
  finish("take an item of a run");
}

// `freed`: a slot that the consumer could not pass on before it was stopped, or `none`.
void slot_ring::end_stopped_wait(std::size_t freed) noexcept {
  wait_list feeders;
  {
    std::lock_guard lock(mutex_);
    end_consumer_wait();
    if (freed != none) return_slot_of_consumer(freed);
    claim_feeders(feeders);
  }
  feeders.resume_all_later();
}

void slot_ring::fill(std::size_t slot) noexcept {
  listed_waiter* woken = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (!closed_) woken = pass_filled(slot);
  }
  if (woken) woken->resume_later();
}

void slot_ring::return_free(std::size_t slot) noexcept {
  wait_list woken;
  {
    std::lock_guard lock(mutex_);
    return_slot(slot);
    --unfinished_;
    claim_feeders(woken);
  }
  woken.resume_all_later();
}

void slot_ring::bound(std::size_t working, std::size_t held) noexcept {
  wait_list woken;
  {
    std::lock_guard lock(mutex_);
    most_working_ = working;
    most_held_ = std::min(held, places_.size());
    while (auto* worker = claim_worker()) woken.push_back(*worker);
    if (auto* feeder = capacity() > 0 ? claim_feeder() : nullptr) woken.push_back(*feeder);
  }
  woken.resume_all_later();
}

listed_waiter* slot_ring::finish_work(filled_awaiter& worker, wait_list& feeders) noexcept {
  --working_;
  auto finished = std::exchange(worker.slot_, none);
  return finished == several ? nullptr : finish_result(finished, feeders);
}

std::size_t slot_ring::take_more(std::uint64_t behind) noexcept {
  std::lock_guard lock(mutex_);
  if (closed_ || filled_.empty() || working_ > most_working_) return none;
  if (numbers_[filled_.front()] < behind) return none;
  return filled_.pop();
}

void slot_ring::finish_early(std::size_t slot) noexcept {
  listed_waiter* consumer = nullptr;
  wait_list feeders;
  {
    std::lock_guard lock(mutex_);
    consumer = finish_result(slot, feeders);
  }
  if (consumer) consumer->resume_later();
  feeders.resume_all_later();
}

void slot_ring::put_back(std::size_t slot) noexcept {
  listed_waiter* worker = nullptr;
  {
    std::lock_guard lock(mutex_);
    filled_.push_front(slot);
    for (std::size_t next = 1; next < filled_.size() && numbers_[filled_[next]] < numbers_[slot];
         ++next)
      filled_.swap(next - 1, next);
    worker = closed_ ? nullptr : claim_worker();
  }
  if (worker) worker->resume_later();
}

void slot_ring::begin_work(filled_awaiter& worker) noexcept {
  worker.slot_ = filled_.pop();
  ++working_;
}

listed_waiter* slot_ring::claim_worker() noexcept {
  if (!has_work()) return nullptr;
  auto* worker = workers_.settle_first();
  if (worker) begin_work(*static_cast<filled_awaiter*>(worker));
  return worker;
}

std::size_t slot_ring::capacity() const noexcept {
  if (!another_fits()) return 0;
  auto held = places_.size() - free_.size() + (kept_for_consumer_ ? 1 : 0);
  return held < most_held_ ? most_held_ - held : 0;
}

// Whether one more result is within the limit in bytes. Several feeders hold slots while they wait
// for their inputs. These slots do not count: a slow input must not stop the others.
bool slot_ring::another_fits() const noexcept {
  if (bytes_.empty()) return true;
  const auto unfinished = options_.feeders > 1 ? 0 : unfinished_;
  if (unfinished == 0 && in_flight_ == 0) return true;
  if (!waiting_bytes_.knows_size()) return unfinished < std::max<std::size_t>(options_.workers, 1);
  return waiting_bytes_.leaves(unfinished + 1, options_.bytes);
}

// The number of free slots at which feeders are woken. Not more than workers and the consumer leave
// free.
std::size_t slot_ring::wake_feeder_at() const noexcept {
  if (options_.refills == refill::at_once) return 1;
  const auto busy = most_working_ + (options_.consumer_owns_slot ? 1 : 0);
  const auto others = most_held_ > busy ? most_held_ - busy : 0;
  const auto some =
      options_.refills == refill::at_half ? others / 2 : std::min(most_held_ / 4, others);
  return std::max<std::size_t>(1, some);
}

void slot_ring::record_filled(std::size_t slot) noexcept {
  places_[slot] = place::filled;
  ++in_flight_;
  if (!numbers_.empty()) numbers_[slot] = ++last_number_;
  if (where_.empty())
    ready_.push(slot);
  else
    begun_.splice(begun_.end(), others_, where_[slot]);
  record_depth();
  if (consumer_waits_) record_wanted();
}

// The item that the consumer waits for: a slot, or demand::next if no slot is in flight.
std::size_t slot_ring::awaited() const noexcept {
  if (in_flight_ == 0) return demand::next;
  return where_.empty() ? ready_.front() : begun_.front();
}

listed_waiter* slot_ring::pass_filled(std::size_t slot) noexcept {
  record_filled(slot);
  if (options_.workers == 0) return finish(slot);
  filled_.push(slot);
  return claim_worker();
}

void slot_ring::end_input() noexcept {
  wait_list woken;
  {
    std::lock_guard lock(mutex_);
    input_over_ = true;
    woken = workers_.settle_all();
    settle_feeders(woken);
    if (auto* consumer = drained() ? claim_consumer(none) : nullptr) woken.push_back(*consumer);
  }
  woken.resume_all_later();
}

void slot_ring::close() noexcept {
  wait_list woken;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    woken = workers_.settle_all();
    settle_feeders(woken);
    if (auto* consumer = claim_consumer(none)) woken.push_back(*consumer);
  }
  woken.resume_all_later();
}

slot_ring::levels slot_ring::count() const {
  std::lock_guard lock(mutex_);
  auto done = static_cast<std::size_t>(std::ranges::count(places_, place::done));
  return {filled_.size(), in_flight_ - filled_.size() - done, done};
}

stage_overview slot_ring::look(
    const std::function<item_overview(std::size_t slot, bool done)>& item) const {
  using enum stage_overview::feeding;
  std::lock_guard lock(mutex_);
  const auto held = places_.size() - free_.size();
  const auto may_work = most_working_ - std::min(working_, most_working_);
  stage_overview now{.slots = most_held_,
                     .free = most_held_ - std::min(held, most_held_),
                     .idle_workers = std::min(workers_.size(), may_work),
                     .wanted = consumer_waits_};
  if (input_over_)
    now.feeder = over;
  else if (!feeders_.empty())
    now.feeder = missing_ == missing::memory ? waits_for_memory : waits_for_slot;
  for (std::size_t i = 0; i < ready_.size(); ++i)
    now.items.push_back(item(ready_[i], places_[ready_[i]] == place::done));
  if (where_.empty()) return now;
  for (std::size_t slot = 0; slot < places_.size(); ++slot)
    if (places_[slot] == place::filled) now.items.push_back(item(slot, false));
  return now;
}

std::size_t slot_ring::pop_done() noexcept {
  auto slot = ready_.pop();
  kept_for_consumer_ = false;
  places_[slot] = place::outside;
  --in_flight_;
  waiting_bytes_.remove(bytes(slot));
  record_depth();
  return slot;
}

listed_waiter* slot_ring::finish(std::size_t slot) noexcept {
  places_[slot] = place::done;
  --unfinished_;
  if (!bytes_.empty()) waiting_bytes_.add(bytes_[slot]);
  if (!where_.empty()) {
    ready_.push(slot);
    others_.splice(others_.end(), begun_, where_[slot]);
  }
  if (consumers_.empty() || closed_ || !deliverable()) return nullptr;
  return claim_consumer(pop_done());
}

void slot_ring::return_slot_of_consumer(std::size_t slot) noexcept {
  return_slot(slot);
  kept_for_consumer_ = options_.consumer_owns_slot;
}

// For a worker: the result may be smaller than the one that was expected.
listed_waiter* slot_ring::finish_result(std::size_t slot, wait_list& feeders) noexcept {
  auto* consumer = finish(slot);
  if (!bytes_.empty()) claim_feeders(feeders);
  return consumer;
}

listed_waiter* slot_ring::claim_consumer(std::size_t slot) noexcept {
  auto* consumer = consumers_.settle_first();
  if (!consumer) return nullptr;
  end_consumer_wait();
  static_cast<done_awaiter*>(consumer)->slot_ = slot;
  return consumer;
}

void slot_ring::begin_consumer_wait() noexcept {
  if (!std::exchange(consumer_waits_, true)) counters_->next_starved.begin(clock::now());
  record_wanted();
}

void slot_ring::end_consumer_wait() noexcept {
  if (!std::exchange(consumer_waits_, false)) return;
  counters_->next_starved.end(clock::now());
  wanted_->await(demand::none);
}

// An item that the consumer waits for may start even if the memory is exhausted.
bool slot_ring::may_begin() const noexcept {
  if (capacity() == 0) return false;
  if (!options_.waits_for_memory) return true;
  bool nothing_in_flight = free_.size() == places_.size();
  if (consumer_waits_ && nothing_in_flight) return true;
  return !memory_.would_wait(counters_->most_at_once.load(std::memory_order_relaxed),
                             unfinished_ + 1);
}

std::size_t slot_ring::begin_item() noexcept {
  const std::size_t slot = free_.back();
  free_.pop_back();
  ++unfinished_;
  if (!bytes_.empty()) bytes_[slot] = 0;  // of the result before
  return slot;
}

void slot_ring::record_missing(missing now) noexcept {
  auto before = std::exchange(missing_, now);
  if (before == now || !options_.measures_feeders) return;
  auto time = clock::now();
  if (before == missing::slot) counters_->output_wait.end(time);
  if (before == missing::memory) counters_->memory_wait.end(time);
  if (now == missing::slot) counters_->output_wait.begin(time);
  if (now == missing::memory) counters_->memory_wait.begin(time);
}

void slot_ring::record_depth() noexcept {
  if (options_.measures_depth) counters_->depth.set(this, in_flight_);
}

listed_waiter* slot_ring::claim_feeder() noexcept {
  if (feeders_.empty()) return nullptr;
  if (!may_begin()) {
    if (capacity() > 0) record_missing(missing::memory);
    return nullptr;
  }
  auto* feeder = feeders_.settle_first();
  static_cast<free_awaiter*>(feeder)->slot_ = begin_item();
  if (feeders_.empty()) record_missing(missing::nothing);
  return feeder;
}

void slot_ring::claim_feeders(wait_list& woken) noexcept {
  while (capacity() >= wake_feeder_at())
    if (auto* feeder = claim_feeder())
      woken.push_back(*feeder);
    else
      return;
}

// No slots will become free: all feeders get `none`.
void slot_ring::settle_feeders(wait_list& woken) noexcept {
  woken.append(feeders_.settle_all());
  record_missing(missing::nothing);
}

}  // namespace lade::detail
