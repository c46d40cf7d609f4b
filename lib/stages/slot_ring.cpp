#include <lade/detail/stages/slot_ring.hpp>

#include <algorithm>
#include <cassert>
#include <utility>

namespace lade::detail {

slot_ring::slot_ring(std::size_t slots, std::size_t workers, item_order order, executor& home,
                     const buffer_pool& memory, stage_counters& counters,
                     std::shared_ptr<const demand> behind)
    : home_(home),
      memory_(memory),
      counters_(counters),
      order_(order),
      wanted_(std::make_shared<demand>(std::move(behind))),
      filled_(slots),
      ready_(slots),
      places_(slots),
      numbers_(slots),
      most_working_(workers),
      most_held_(slots) {
  free_.reserve(slots);
  for (auto slot = slots; slot-- > 0;) free_.push_back(slot);
  if (order == item_order::input) return;
  for (std::size_t slot = 0; slot < slots; ++slot)
    where_.push_back(others_.insert(others_.end(), slot));
}

bool slot_ring::free_or_park(waiting& feeder) noexcept {
  waiting* worker = nullptr;
  bool park = false;
  {
    std::lock_guard lock(mutex_);
    auto filled = std::exchange(feeder.slot, none);
    if (closed_) return false;
    if (filled != none) worker = fill(filled);
    park = !may_begin();
    if (park) {
      park_feeder(feeder);
    } else {
      feeder.slot = begin_item();
    }
  }
  if (worker) worker->post();
  return park;
}

bool slot_ring::filled_or_park(waiting& worker) noexcept {
  std::unique_lock lock(mutex_);
  auto* consumer = worker.slot == none ? nullptr : finish_work(worker);
  if (consumer && has_work()) {  // which another worker may take meanwhile
    lock.unlock();
    consumer->resume();
    lock.lock();
    consumer = nullptr;
  }
  bool park = !has_work() && !input_over_ && !closed_;
  if (park)
    workers_.push(worker);
  else if (has_work() && !closed_)
    begin_work(worker);
  lock.unlock();
  if (consumer) consumer->resume();
  return park;
}

bool slot_ring::done_or_park(waiting& consumer) noexcept {
  auto& memory = memory_;  // the consumer may go on, and end this, once the mutex is released
  std::unique_lock lock(mutex_);
  if (consumer.slot != none) free_.push_back(std::exchange(consumer.slot, none));
  bool park = !deliverable() && !drained();
  if (park) {
    consumer_ = &consumer;
    counters_.starving.begin(clock::now());
    note_wanted();
  } else if (deliverable() && !closed_) {
    consumer.slot = pop_done();
  }
  auto* feeder = room() < wake_feeder_at() ? nullptr : claim_feeder();
  lock.unlock();
  if (park) memory.reconsider();  // which may resume others
  if (feeder) feeder->post();
  return park;
}

void slot_ring::bound(std::size_t working, std::size_t held) noexcept {
  std::unique_lock lock(mutex_);
  most_working_ = working;
  most_held_ = std::min(held, places_.size());
  while (auto* worker = claim_worker()) {
    lock.unlock();
    worker->post();
    lock.lock();
  }
  auto* feeder = room() > 0 ? claim_feeder() : nullptr;
  lock.unlock();
  if (feeder) feeder->post();
}

slot_ring::waiting* slot_ring::finish_work(waiting& worker) noexcept {
  --working_;
  auto finished = std::exchange(worker.slot, none);
  return finished == several ? nullptr : finish(finished);
}

std::size_t slot_ring::take_more(std::uint64_t behind) noexcept {
  std::lock_guard lock(mutex_);
  if (closed_ || filled_.empty() || working_ > most_working_) return none;
  if (numbers_[filled_.front()] < behind) return none;
  return filled_.pop();
}

void slot_ring::finish_early(std::size_t slot) noexcept {
  waiting* consumer = nullptr;
  {
    std::lock_guard lock(mutex_);
    consumer = finish(slot);
  }
  if (consumer) consumer->post();
}

void slot_ring::put_back(std::size_t slot) noexcept {
  waiting* worker = nullptr;
  {
    std::lock_guard lock(mutex_);
    filled_.push_front(slot);
    for (std::size_t next = 1; next < filled_.size() && numbers_[filled_[next]] < numbers_[slot];
         ++next)
      std::swap(filled_[next - 1], filled_[next]);
    worker = closed_ ? nullptr : claim_worker();
  }
  if (worker) worker->post();
}

void slot_ring::begin_work(waiting& worker) noexcept {
  worker.slot = filled_.pop();
  ++working_;
}

slot_ring::waiting* slot_ring::claim_worker() noexcept {
  if (!has_work() || workers_.empty()) return nullptr;
  auto* worker = workers_.pop();
  begin_work(*worker);
  return worker;
}

std::size_t slot_ring::room() const noexcept {
  auto held = places_.size() - free_.size();
  return held < most_held_ ? most_held_ - held : 0;
}

// So many free slots; the others suffice for the workers.
std::size_t slot_ring::wake_feeder_at() const noexcept {
  auto beyond_workers = most_held_ > most_working_ ? most_held_ - most_working_ : 0;
  return std::max<std::size_t>(1, std::min(most_held_ / 4, beyond_workers));
}

void slot_ring::note_filled(std::size_t slot) noexcept {
  places_[slot] = place::filled;
  numbers_[slot] = ++last_number_;
  ++in_flight_;
  if (order_ == item_order::input)
    ready_.push(slot);
  else
    begun_.splice(begun_.end(), others_, where_[slot]);
  if (consumer_) note_wanted();
}

// Which item the consumer waits for: whose slot it is in, or the one that the feeder will bring.
std::size_t slot_ring::awaited() const noexcept {
  if (in_flight_ == 0) return demand::next;
  return order_ == item_order::input ? ready_.front() : begun_.front();
}

slot_ring::waiting* slot_ring::fill(std::size_t slot) noexcept {
  note_filled(slot);
  filled_.push(slot);
  return claim_worker();
}

void slot_ring::fill_done(std::size_t slot) noexcept {
  waiting* consumer = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    note_filled(slot);
    consumer = finish(slot);
  }
  if (consumer) consumer->post();
}

void slot_ring::end_input() noexcept {
  parked_list idle;
  waiting* consumer = nullptr;
  {
    std::lock_guard lock(mutex_);
    input_over_ = true;
    idle = std::exchange(workers_, {});
    if (drained()) consumer = claim_consumer(none);
  }
  idle.post_all();
  if (consumer) consumer->post();
}

void slot_ring::close() noexcept {
  parked_list idle;
  waiting* feeder = nullptr;
  waiting* consumer = nullptr;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    idle = std::exchange(workers_, {});
    feeder = take_feeder();
    consumer = claim_consumer(none);
  }
  idle.post_all();
  if (feeder) feeder->post();
  if (consumer) consumer->post();
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
  stage_overview now{.slots = places_.size(),
                     .free = free_.size(),
                     .idle_workers = workers_.size(),
                     .wanted = consumer_ != nullptr};
  if (input_over_)
    now.feeder = over;
  else if (feeder_)
    now.feeder = feeder_has_room_ ? waits_for_memory : waits_for_room;
  for (std::size_t i = 0; i < ready_.size(); ++i)
    now.items.push_back(item(ready_[i], places_[ready_[i]] == place::done));
  if (order_ == item_order::input) return now;
  for (std::size_t slot = 0; slot < places_.size(); ++slot)
    if (places_[slot] == place::filled) now.items.push_back(item(slot, false));
  return now;
}

std::size_t slot_ring::pop_done() noexcept {
  auto slot = ready_.pop();
  places_[slot] = place::outside;
  --in_flight_;
  return slot;
}

slot_ring::waiting* slot_ring::finish(std::size_t slot) noexcept {
  places_[slot] = place::done;
  --unfinished_;
  if (order_ == item_order::completion) {
    ready_.push(slot);
    others_.splice(others_.end(), begun_, where_[slot]);
  }
  return consumer_ && !closed_ && deliverable() ? claim_consumer(pop_done()) : nullptr;
}

slot_ring::waiting* slot_ring::claim_consumer(std::size_t slot) noexcept {
  if (!consumer_) return nullptr;
  counters_.starving.end(clock::now());
  wanted_->await(demand::none);
  consumer_->slot = slot;
  return std::exchange(consumer_, nullptr);
}

// However little memory there is, an item may be begun that somebody waits for.
bool slot_ring::may_begin() const noexcept {
  if (room() == 0) return false;
  bool nothing_in_hand = free_.size() == places_.size();
  if (consumer_ && nothing_in_hand) return true;
  return !memory_.would_wait(counters_.most_at_once.load(std::memory_order_relaxed),
                             unfinished_ + 1);
}

std::size_t slot_ring::begin_item() noexcept {
  auto slot = free_.back();
  free_.pop_back();
  ++unfinished_;
  return slot;
}

void slot_ring::park_feeder(waiting& feeder) noexcept {
  feeder_ = &feeder;
  feeder_has_room_ = room() > 0;
  if (feeder_has_room_)
    counters_.memory_wait.begin(clock::now());
  else
    counters_.output_wait.begin(clock::now());
}

slot_ring::waiting* slot_ring::take_feeder() noexcept {
  if (feeder_ && feeder_has_room_)
    counters_.memory_wait.end(clock::now());
  else if (feeder_)
    counters_.output_wait.end(clock::now());
  return std::exchange(feeder_, nullptr);
}

slot_ring::waiting* slot_ring::claim_feeder() noexcept {
  if (!feeder_) return nullptr;
  if (may_begin()) {
    feeder_->slot = begin_item();
    return take_feeder();
  }
  if (!feeder_has_room_ && room() > 0) park_feeder(*take_feeder());
  return nullptr;
}

}  // namespace lade::detail
