#include "workers.hpp"

#include <lade/detail/runtime/activity.hpp>
#include <lade/error.hpp>
#include <lade/random.hpp>
#include <lade/runtime.hpp>
#include <lade/sleep.hpp>

#include <algorithm>
#include <utility>

namespace lade::detail {

concurrent_core::calling_worker::calling_worker(concurrent_core& stage, const context& execution)
    : stage_(stage), context_(execution), busy_(stage.counters().busy) {}

void concurrent_core::calling_worker::begin_function() {
  try {
    calls_ = stage_.begin_calls();
  } catch (...) {
    thrown_ = stage_.run_->failures().fail(stage_.counters(), {on_error::fail}, {}, {});
  }
}

concurrent_core::calling_worker::call::call(concurrent_core& stage) {
  auto& run = stage.run_->options();
  if (run.trace || !run.hooks.all().empty())
    observed = std::make_unique<observers>(run.trace, stage.counters());
}

void concurrent_core::calling_worker::drop(std::size_t slot) noexcept {
  if (!calls_) stage_.record(slot).failure = thrown_;
  stage_.drop_item(slot);
}

void concurrent_core::calling_worker::begin(call& of, std::size_t number, clock::time_point now) {
  auto& item = of.item;
  calls_->keep_name(number, item.slot);
  item.kept = false;
  item.started = now;
  if (stage_.run_->options().trace)
    stage_.run_->arrows().step(stage_.record(item.slot).origin, of.observed->track.number(), now);
  leave_out_waits(item, now);
  if (item.attempts == 0) item.first_started = now;
  stage_.note(item.slot, item_overview::doing::works, now);
}

void concurrent_core::calling_worker::prepare(call& of, std::size_t number) {
  auto& item = of.item;
  bool may_be_tried_again = item.attempts + 1 < stage_.options_.policy.retry.attempts;
  item.kept = may_be_tried_again && calls_->copy(number, item.slot);
  if (!of.observed) return;
  auto& hooked = of.observed->hooked.emplace(*stage_.run_, stage_.counters(),
                                             stage_.record(item.slot).origin, item.attempts + 1);
  if (hooked.has_hooks()) hooked.enter(calls_->name(number), calls_->argument(item.slot));
}

bool concurrent_core::calling_worker::end(call& of, std::size_t number,
                                          const std::exception_ptr& thrown, clock::time_point now) {
  auto& item = of.item;
  std::optional<clock::duration> pause;
  auto failure = end_hooks(of, thrown);
  leave_out_waits(item, now);
  if (failure) {
    stage_.drop_result(item.slot);
    try {
      std::rethrow_exception(failure);
    } catch (...) {
      pause = stage_.failed(item, calls_->name(number));
    }
  }
  record(of, number, now);
  if (pause && try_again(item, number, *pause)) return true;
  calls_->drop_copy(number);
  if (auto* result = stage_.result(item.slot)) stage_.measure_result(item.slot, result);
  return false;
}

std::exception_ptr concurrent_core::calling_worker::end_hooks(
    call& of, const std::exception_ptr& thrown) const noexcept {
  if (!of.observed || !of.observed->hooked) return thrown;  // the latter if nothing was prepared
  auto failure = of.observed->hooked->end(thrown, calls_->result(of.item.slot));
  of.observed->hooked.reset();
  return failure;
}

// Excludes from the time limits the time that the worker has waited for memory.
void concurrent_core::calling_worker::leave_out_waits(called_item& item,
                                                      clock::time_point now) const {
  if (!stage_.options_.limits.any()) return;
  auto waited = waited_for_memory(context_, now);
  item.first_started += waited - item.waited;
  item.waited = waited;
}

void concurrent_core::calling_worker::record(call& of, std::size_t number, clock::time_point now) {
  auto& counters = stage_.counters();
  auto& origin = stage_.record(of.item.slot).origin;
  const auto taken = now - of.item.started;
  const bool is_slow = counters.slowest.take(taken);
  counters.latency.add(taken);
  auto* trace = stage_.run_->options().trace;
  if (!is_slow && !trace) return;
  auto name = calls_->name(number);
  if (is_slow) counters.slowest.add({name, origin, taken});
  if (!trace) return;
  trace->add_span(of.observed->track.number(), name.empty() ? counters.name() : name,
                  of.item.started, now, origin);
  stage_.record_levels();
}

bool concurrent_core::calling_worker::try_again(called_item& item, std::size_t number,
                                                clock::duration pause) {
  auto now = clock::now();
  try {
    calls_->put_copy_back(number, item.slot);
  } catch (...) {
    item.kept = false;
    stage_.failed(item, calls_->name(number));
    return false;
  }
  ++item.attempts;
  item.started = now + pause;
  stage_.note(item.slot, item_overview::doing::pauses, now);
  return true;
}

task<> concurrent_core::calling_worker::pause_before(concurrent_core& stage,
                                                     clock::time_point next_attempt) {
  call_time::caller paused(stage.counters().paused);
  paused.begin(clock::now());
  co_await sleep_until(next_attempt);
  paused.end(clock::now());
}

concurrent_core::task_worker::task_worker(concurrent_core& stage, const context& execution)
    : calling_worker(stage, execution), call_(stage) {}

void concurrent_core::task_worker::take(std::size_t slot) noexcept {
  call_.item = {.slot = slot};
  if (slot != slot_ring::none) context_.claim->set_item(slot);
}

bool concurrent_core::task_worker::must_wait() const noexcept {
  return call_.item.attempts > 0 || stage_.run_->failures().is_behind();
}

task<> concurrent_core::task_worker::wait() {
  if (call_.item.attempts > 0) co_await pause_before(stage_, call_.item.started);
  if (stage_.run_->failures().is_behind()) co_await stage_.run_->failures().caught_up();
}

bool concurrent_core::task_worker::begin() {
  if (!may_call()) {
    drop(slot());
    return false;
  }
  auto now = clock::now();
  calling_worker::begin(call_, 0, now);
  busy_.begin(now);
  name_step("in its function", stage_.counters().number);
  return true;
}

void concurrent_core::task_worker::start() {
  prepare(call_, 0);
  item_random draw(stage_.draws_, stage_.identity(slot()));
  calls_->call(slot(), draw, stage_.time_left(call_.item));
}

void concurrent_core::task_worker::finish() {
  calls_->finish(slot());
  stage_.require_in_time(call_.item, context_);
}

bool concurrent_core::task_worker::end() {
  auto thrown = std::exchange(thrown_, nullptr);
  auto now = clock::now();
  busy_.end(now);
  if (calling_worker::end(call_, 0, thrown, now)) return true;
  stage_.drop_item(slot());
  return false;
}

concurrent_core::computing_worker::computing_worker(concurrent_core& stage,
                                                    const context& execution)
    : calling_worker(stage, execution),
      memory_(*execution.memory, stage.counters(), execution.stop),
      cpu_(stage.counters().cpu, true) {
  const auto at_a_time = stage.options_.items_at_a_time;
  in_flight_.reserve(at_a_time);
  attempts_.reserve(at_a_time);
  for (unsigned i = 0; i < at_a_time; ++i)
    in_flight_.push_back(std::make_unique<numbered_call>(stage));
}

void concurrent_core::computing_worker::take(const called_item& item) noexcept {
  next_ = item;
  if (has_item()) context_.claim->set_item(item.slot);
}

task<> concurrent_core::computing_worker::take_attempt() {
  auto next = std::ranges::min_element(attempts_, {}, &called_item::started);
  co_await pause_before(stage_, next->started);
  if (!may_try(*next)) {
    next = attempts_.begin();
    co_await pause_before(stage_, next->started);
  }
  take(*next);
  attempts_.erase(next);
}

bool concurrent_core::computing_worker::may_try(const called_item& item) noexcept {
  if (item.slot == attempts_.front().slot || !calls_->reserves_memory()) return true;
  return memory_.try_reserve(needed_for(*calls_, item.slot));
}

void concurrent_core::computing_worker::add_attempt(const called_item& item) {
  auto& ring = stage_.ring_;
  auto behind = std::ranges::find_if(attempts_, [&](const called_item& each) {
    return ring.number_of(each.slot) > ring.number_of(item.slot);
  });
  attempts_.insert(behind, item);
}

bool concurrent_core::computing_worker::had_its_turn() noexcept {
  if (computed_ < std::chrono::microseconds(20)) return false;
  computed_ = {};
  return true;
}

bool concurrent_core::computing_worker::must_reserve() const noexcept {
  return calls_ && calls_->reserves_memory() && memory_.reserved() == 0;
}

std::size_t concurrent_core::computing_worker::work() {
  if (!may_call()) {
    auto slot = std::exchange(next_, {}).slot;
    drop(slot);
    memory_.end_item(0);
    return finished(slot);
  }
  if (stage_.options_.items_at_a_time == 1 || next_.attempts > 0) return call_for_one();
  call_for_several();
  return slot_ring::several;
}

std::size_t concurrent_core::computing_worker::finished(std::size_t slot) noexcept {
  if (attempts_.empty()) return slot;
  stage_.ring_.finish_early(slot);
  return slot_ring::several;
}

void concurrent_core::computing_worker::begin_time(clock::time_point now) noexcept {
  began_ = now;
  busy_.begin(now);
  cpu_.begin();
}

void concurrent_core::computing_worker::end_time(clock::time_point now) noexcept {
  constexpr std::chrono::microseconds long_call{100};
  made_long_call_ = now - began_ >= long_call;
  computed_ += now - began_;
  cpu_.end(now - began_);
  busy_.end(now);
}

std::size_t concurrent_core::computing_worker::call_for_one() {
  auto& only = *in_flight_.front();
  auto& item = only.item = std::exchange(next_, {});
  auto start = clock::now();
  begin(only, 0, start);
  begin_time(start);
  std::exception_ptr thrown;
  try {
    prepare(only, 0);
    compute(item.slot);
    stage_.require_in_time(item, context_);
  } catch (...) {
    thrown = std::current_exception();
  }
  auto now = clock::now();
  end_time(now);
  const bool is_back = end(only, 0, thrown, now);
  const auto ended = std::exchange(item, {});
  memory_.end_item(0);  // if nothing was called
  if (is_back) {
    add_attempt(ended);
    return slot_ring::several;
  }
  stage_.drop_item(ended.slot);
  return finished(ended.slot);
}

void concurrent_core::computing_worker::compute(std::size_t slot) {
  item_random draw(stage_.draws_, stage_.identity(slot));
  call_memory::entered inside(memory_);
  calls_->call(slot, draw, std::nullopt);
}

void concurrent_core::computing_worker::call_for_several() {
  takes_more_ = true;
  begin_time(clock::now());
  call_memory::entered inside(memory_);
  std::exception_ptr thrown;
  try {
    calls_->call(*this);
  } catch (...) {
    thrown = std::current_exception();
  }
  takes_more_ = false;
  take();  // the first item, if the function has not
  for (auto& each : in_flight_)
    if (each->item.slot != none) end_early(each->item.slot, thrown ? thrown : not_ended());
  end_time(clock::now());
}

std::exception_ptr concurrent_core::computing_worker::not_ended() const {
  return std::make_exception_ptr(
      error(errc::invalid_argument, stage_.counters().name(),
            "the function has returned without ending an item that it has taken"));
}

std::exception_ptr concurrent_core::computing_worker::no_reason() const {
  return std::make_exception_ptr(error(errc::invalid_argument, stage_.counters().name(),
                                       "the function has failed an item with a null pointer"));
}

std::size_t concurrent_core::computing_worker::number_of(std::size_t slot) const noexcept {
  auto at = std::ranges::find(in_flight_, slot, [](auto& each) { return each->item.slot; });
  return static_cast<std::size_t>(at - in_flight_.begin());
}

std::size_t concurrent_core::computing_worker::take() {
  auto number = number_of(none);
  if (number == in_flight_.size()) return none;
  auto& of = *in_flight_[number];
  while (true) {
    const auto before = next_.slot == none ? memory_.reserved() : 0;
    auto slot = std::exchange(next_, {}).slot;
    if (slot == none) slot = take_waiting();
    if (slot == none) return none;
    last_ = stage_.ring_.number_of(slot);
    of.item = {.slot = slot};
    begin(of, number, clock::now());
    of.needed = memory_.reserved() - before;
    try {
      prepare(of, number);
      return slot;
    } catch (...) {
      end_early(slot, std::current_exception());
    }
  }
}

std::size_t concurrent_core::computing_worker::take_waiting() {
  if (!may_take_more()) return none;
  auto slot = stage_.ring_.take_more(last_);
  if (slot == none) return none;
  if (!calls_->reserves_memory() || memory_.try_reserve(needed_for(*calls_, slot))) return slot;
  takes_more_ = false;  // that item is next, for a worker that can wait for its memory
  stage_.ring_.put_back(slot);
  return none;
}

// A call may take further items for 5 ms. Then it ends if later stages wait for the thread.
bool concurrent_core::computing_worker::may_take_more() const {
  constexpr std::chrono::milliseconds turn{5};
  if (!takes_more_ || context_.stop.stop_requested()) return false;
  if (stage_.run_->failures().is_behind()) return false;
  return clock::now() - began_ < turn || !context_.home->has_nearer(context_.distance);
}

random concurrent_core::computing_worker::draw(std::size_t slot) const {
  return stage_.draws_(stage_.identity(slot));
}

void concurrent_core::computing_worker::finish(std::size_t slot) noexcept {
  try {
    stage_.require_in_time(in_flight_[number_of(slot)]->item, context_);
  } catch (...) {
    return end_early(slot, std::current_exception());
  }
  end_early(slot, nullptr);
}

void concurrent_core::computing_worker::fail(std::size_t slot,
                                             const std::exception_ptr& why) noexcept {
  end_early(slot, why ? why : no_reason());
}

// The function must not see exceptions of the records, such as std::bad_alloc: they end the run.
void concurrent_core::computing_worker::end_early(std::size_t slot,
                                                  const std::exception_ptr& thrown) noexcept {
  const auto number = number_of(slot);
  auto& of = *in_flight_[number];
  bool is_back = false;
  try {
    if (end(of, number, thrown, clock::now())) {
      add_attempt(of.item);
      is_back = true;
    }
  } catch (...) {
    stage_.record(slot).failure = std::current_exception();
  }
  of.item = {};
  end_memory();
  if (is_back) return;
  stage_.drop_item(slot);
  stage_.ring_.finish_early(slot);
}

// After the end of an item: releases the memory that the remaining items do not need.
void concurrent_core::computing_worker::end_memory() noexcept {
  std::size_t others_need = 0;
  for (const auto& each : in_flight_)
    if (each->item.slot != none) others_need += each->needed;
  memory_.end_item(others_need);
}

}  // namespace lade::detail
