#include "items_in_flight.hpp"

#include <lade/error.hpp>

#include <algorithm>
#include <utility>

namespace lade::detail {

concurrent_core::items_in_flight::items_in_flight(concurrent_core& stage, slot_calls* calls,
                                                  call_log& log, call_memory& memory,
                                                  const context& execution)
    : stage_(stage), calls_(calls), log_(log), memory_(memory), context_(execution) {
  if (!calls) return;
  items_.reserve(calls->items_at_a_time);
  attempts_.reserve(calls->items_at_a_time);
  for (unsigned i = 0; i < calls->items_at_a_time; ++i)
    items_.push_back(
        std::make_unique<item>(stage_track(stage.run_->options().trace, stage.counters())));
}

void concurrent_core::items_in_flight::begin_call(std::size_t slot) {
  auto now = clock::now();
  begin(0, slot, now);
  log_.begin_call(now);
}

void concurrent_core::items_in_flight::prepare() { prepare(0); }

std::size_t concurrent_core::items_in_flight::end_call(const std::exception_ptr& thrown) {
  auto now = clock::now();
  log_.end_call(now);
  auto slot = items_.front()->slot;
  if (end(0, thrown, now)) return slot_ring::several;
  stage_.drop_item(slot);
  return finished(slot);
}

std::size_t concurrent_core::items_in_flight::finished(std::size_t slot) noexcept {
  if (attempts_.empty()) return slot;
  stage_.ring_.finish_early(slot);
  return slot_ring::several;
}

std::size_t concurrent_core::items_in_flight::due_first() const noexcept {
  return *std::ranges::min_element(
      attempts_, {}, [this](std::size_t slot) { return stage_.slots_[slot].next_attempt; });
}

bool concurrent_core::items_in_flight::may_try(std::size_t slot) noexcept {
  if (slot == first_attempt() || !calls_->tells_memory) return true;
  return memory_.try_reserve(needed_for(*calls_, slot));
}

void concurrent_core::items_in_flight::begin(std::size_t number, std::size_t slot,
                                             clock::time_point now) {
  auto& state = stage_.slots_[slot];
  auto& taken = *items_[number];
  taken.slot = slot;
  last_ = stage_.ring_.number_of(slot);
  taken.kept = false;
  calls_->keep_name(number, slot);
  taken.hooked.emplace(*stage_.run_, stage_.counters(), state.record->origin, state.attempts + 1);
  log_.begin_item(state, taken.track, now);
}

void concurrent_core::items_in_flight::prepare(std::size_t number) {
  auto& taken = *items_[number];
  bool may_be_tried_again =
      stage_.slots_[taken.slot].attempts + 1 < stage_.options_.policy.retry.attempts;
  taken.kept = may_be_tried_again && calls_->copy(number, taken.slot);
  if (taken.hooked->has_hooks())
    taken.hooked->enter(calls_->name(number), calls_->argument(taken.slot));
}

std::exception_ptr concurrent_core::items_in_flight::end_hooks(
    item& of, const std::exception_ptr& thrown) const noexcept {
  if (!of.hooked->has_hooks()) return thrown;
  return of.hooked->end(thrown, calls_->result(of.slot));
}

// True if the item is to be tried again.
bool concurrent_core::items_in_flight::end(std::size_t number, const std::exception_ptr& thrown,
                                           clock::time_point now) {
  auto& taken = *items_[number];
  std::optional<clock::duration> pause;
  auto failure = end_hooks(taken, thrown);
  taken.hooked.reset();
  log_.leave_out_waits(stage_.slots_[taken.slot], now);
  if (failure) {
    stage_.drop_result(taken.slot);
    try {
      std::rethrow_exception(failure);
    } catch (...) {
      pause = stage_.failed(taken.slot, calls_->name(number), taken.kept);
    }
  }
  log_.end_item(stage_.slots_[taken.slot], called_name{*calls_, number}, taken.track, now);
  if (pause)
    try_again(number, *pause);
  else
    calls_->drop_copy(number);
  taken.slot = none;
  return pause.has_value();
}

void concurrent_core::items_in_flight::try_again(std::size_t number, clock::duration pause) {
  auto slot = items_[number]->slot;
  auto& state = stage_.slots_[slot];
  auto now = clock::now();
  calls_->put_copy_back(number, slot);
  ++state.attempts;
  state.next_attempt = now + pause;
  state.record->note(item_overview::doing::pauses, now);
  auto& ring = stage_.ring_;
  auto behind = std::ranges::find_if(
      attempts_, [&](std::size_t each) { return ring.number_of(each) > ring.number_of(slot); });
  attempts_.insert(behind, slot);  // has room for all
}

void concurrent_core::items_in_flight::call_for_several(std::size_t first) {
  first_ = first;
  takes_more_ = true;
  began_ = clock::now();
  log_.begin_call(began_);
  call_memory::entered inside(memory_);
  std::exception_ptr thrown;
  try {
    calls_->call(*this);
  } catch (...) {
    thrown = std::current_exception();
  }
  takes_more_ = false;
  take();  // the first item, if the function has not
  for (auto& each : items_)
    if (each->slot != none) end_early(each->slot, thrown ? thrown : not_ended());
  log_.end_call(clock::now());
}

std::exception_ptr concurrent_core::items_in_flight::not_ended() const {
  return std::make_exception_ptr(
      error(errc::invalid_argument, stage_.counters().name(),
            "the function has returned without ending an item that it has taken"));
}

std::exception_ptr concurrent_core::items_in_flight::no_reason() const {
  return std::make_exception_ptr(error(errc::invalid_argument, stage_.counters().name(),
                                       "the function has failed an item with a null pointer"));
}

std::size_t concurrent_core::items_in_flight::number_of(std::size_t slot) const noexcept {
  auto at = std::ranges::find(items_, slot, [](auto& each) { return each->slot; });
  return static_cast<std::size_t>(at - items_.begin());
}

std::size_t concurrent_core::items_in_flight::take() {
  auto number = number_of(none);
  if (number == items_.size()) return none;
  while (true) {
    const auto before = first_ == none ? memory_.reserved() : 0;
    auto slot = std::exchange(first_, none);
    if (slot == none) slot = take_waiting();
    if (slot == none) return none;
    begin(number, slot, clock::now());
    items_[number]->needed = memory_.reserved() - before;
    try {
      prepare(number);
      return slot;
    } catch (...) {
      end_early(slot, std::current_exception());
    }
  }
}

std::size_t concurrent_core::items_in_flight::take_waiting() {
  if (!may_take_more()) return none;
  auto slot = stage_.ring_.take_more(last_);
  if (slot == none) return none;
  if (!calls_->tells_memory || memory_.try_reserve(needed_for(*calls_, slot))) return slot;
  takes_more_ = false;  // that one is next, for whoever can wait for its memory
  stage_.ring_.put_back(slot);
  return none;
}

// A call may go on for a while, so that the function has a second item while there is one. Then it
// ends where nearer work waits for the thread.
bool concurrent_core::items_in_flight::may_take_more() const {
  constexpr std::chrono::milliseconds turn{5};
  if (!takes_more_ || context_.stop.stop_requested()) return false;
  if (stage_.run_->failures().is_behind()) return false;
  return clock::now() - began_ < turn || !context_.home->has_nearer(context_.distance);
}

random concurrent_core::items_in_flight::draw(std::size_t slot) const {
  return stage_.draws_(stage_.slots_[slot].identity);
}

void concurrent_core::items_in_flight::finish(std::size_t slot) noexcept {
  try {
    stage_.require_in_time(stage_.slots_[slot], context_);
  } catch (...) {
    return end_early(slot, std::current_exception());
  }
  end_early(slot, nullptr);
}

void concurrent_core::items_in_flight::fail(std::size_t slot,
                                            const std::exception_ptr& why) noexcept {
  end_early(slot, why ? why : no_reason());
}

// What cannot be recorded for want of memory ends the run: the function has nothing to do with
// that.
void concurrent_core::items_in_flight::end_early(std::size_t slot,
                                                 const std::exception_ptr& thrown) noexcept {
  auto number = number_of(slot);
  bool is_back = false;
  try {
    is_back = end(number, thrown, clock::now());
  } catch (...) {
    stage_.record(slot).failure = std::current_exception();
    items_[number]->slot = none;
  }
  end_memory();
  if (is_back) return;
  stage_.drop_item(slot);
  stage_.ring_.finish_early(slot);
}

// Of an item that has just been ended.
void concurrent_core::items_in_flight::end_memory() noexcept {
  std::size_t others_need = 0;
  for (const auto& each : items_)
    if (each->slot != none) others_need += each->needed;
  memory_.end_item(others_need);
}

}  // namespace lade::detail
