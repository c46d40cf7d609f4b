#include "items_in_flight.hpp"

#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/runtime/activity.hpp>
#include <lade/detail/runtime/continue_on.hpp>
#include <lade/detail/runtime/operation.hpp>
#include <lade/detail/stages/concurrent_core.hpp>
#include <lade/error.hpp>
#include <lade/random.hpp>
#include <lade/runtime.hpp>
#include <lade/sleep.hpp>

#include <utility>

namespace lade::detail {

static concurrent_options completed(concurrent_options options, const run_options& run) {
  if (options.policy.retry.attempts == 0) options.policy.retry = run.retry;
  return options;
}

static link_options link_with_workers(const concurrent_options& options) {
  return {.ring = {.slots = options.slots,
                   .workers = options.workers,
                   .order = options.order,
                   .waits_for_memory = true,
                   .measures_feeder = true},
          .counts_items = true,
          .is_reported = true};
}

concurrent_core::concurrent_core(const open_context& run, stage_counters& counters,
                                 const concurrent_options& options)
    : link_base(run, link_with_workers(options)),
      options_(completed(options, run_->options())),
      draws_(run, options.number),
      slots_(options.slots) {
  count_for(counters);
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) slots_[slot].record = &record(slot);
  worker_contexts_.assign(options.workers, context_);
  for (auto& each : worker_contexts_) each.claim = &worker_claims_.emplace_back(ring_.wanted());
  if (options.memory) {
    worker_memory_ = run_->runtime().memory().over(*options.memory);
    for (auto& each : worker_contexts_) each.memory = &*worker_memory_;
  }
  run_->stages().record_workers(counters, assign_executors());
  if (options_.shares_cpus)
    run_->tuned().list(run.at->key(), {counters.name(), options_.workers, options_.buffer});
  if (options_.tuned_by) tune(run.at->key(), *options_.tuned_by);
}

stage_workers concurrent_core::assign_executors() {
  stage_workers resources{
      .workers = options_.workers, .on_reactor = options_.on_reactor, .slots = options_.slots};
  executor* home = options_.pool;
  if (options_.pool) {
    resources.own_threads = options_.pool->size();
  } else if (auto* share = run_->automatic_share(); share && options_.shares_cpus) {
    resources.shared_threads = options_.workers;
    home = share;
  }
  for (std::size_t i = 0; i < options_.workers; ++i) {
    if (home) worker_contexts_[i].home = home;
    if (options_.on_reactor) worker_contexts_[i].home = &run_->runtime().reactor(i);
  }
  return resources;
}

void concurrent_core::start_workers(generator upstream) {
  for (auto& execution : worker_contexts_)
    run_->start(shared_from_this(), execution, work_on(*this, execution));
  start(std::move(upstream));
}

void concurrent_core::put(std::size_t slot, void* item, const lineage& origin) {
  slots_[slot].identity = identify_(origin);
  slots_[slot].attempts = 0;
  put_item(slot, item);
}

// `co_await called_task(calls)` starts the task that a worker has got, and waits for its end.
class called_task : private completion {
 public:
  explicit called_task(slot_calls& calls) noexcept : completion{resume_worker}, calls_(calls) {}

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> worker) {
    worker_ = worker;
    context_ = worker.promise().context;
    return !calls_.start(worker.promise(), *this);
  }
  void await_resume() const noexcept {}

 private:
  static void resume_worker(completion& self) noexcept {
    auto& waiting = static_cast<called_task&>(self);
    resume_at_home(waiting.worker_, waiting.context_);
  }

  slot_calls& calls_;
  std::coroutine_handle<> worker_;
  const context* context_ = nullptr;
};

task<> concurrent_core::work_on(concurrent_core& self, const context& execution) {
  auto* home = execution.home;
  call_log log(self, execution);
  call_memory memory(*execution.memory, self.counters(), execution.stop);
  co_await continue_on(*home);
  std::exception_ptr failure;
  auto calls = self.begin_worker(failure);
  items_in_flight in_hand(self, calls.get(), log, memory, execution);
  std::size_t done = slot_ring::none;
  while (true) {
    std::size_t taken = slot_ring::none;
    if (in_hand.has_attempts())
      taken = co_await self.next_attempt(in_hand, log);
    else
      taken = co_await self.ring_.take_filled(done);
    if (taken == slot_ring::none) break;
    if (log.had_its_turn()) co_await yield_thread(*home);
    if (self.run_->failures().is_behind()) co_await self.run_->failures().room();
    auto& slot = self.slots_[taken];
    slot.record->failure = failure;
    execution.claim->set_item(taken);
    if (calls && calls->tells_memory && memory.reserved() == 0) {
      auto reserved = co_await reserve(needed_for(*calls, taken));
      memory.reserve(std::move(reserved));
    }
    if (!calls || execution.stop.stop_requested()) {  // which has ended the waits
      self.drop_item(taken);
      done = in_hand.finished(taken);
    } else if (calls->items_at_a_time > 1 && slot.attempts == 0) {
      in_hand.call_for_several(taken);
      done = slot_ring::several;
    } else {
      std::exception_ptr thrown;
      in_hand.begin_call(taken);
      try {
        in_hand.prepare();
        self.call(*calls, taken, memory);
        if (calls->are_tasks) {
          co_await called_task(*calls);
          calls->finish(taken);
        }
        self.require_in_time(slot, execution);
      } catch (...) {
        thrown = std::current_exception();
      }
      done = in_hand.end_call(thrown);
    }
    if (auto* moved = self.update_home(execution); moved != home) {
      home = moved;
      co_await continue_on(*home);
    }
  }
}

// What a worker calls; if there is none, all its items fail.
std::unique_ptr<slot_calls> concurrent_core::begin_worker(std::exception_ptr& failure) {
  try {
    return begin_calls();
  } catch (...) {
    failure = run_->failures().fail(counters(), {on_error::fail}, {}, {});
    return nullptr;
  }
}

task<std::size_t> concurrent_core::next_attempt(items_in_flight& in_hand, call_log& log) const {
  auto next = in_hand.due_first();
  co_await pause_before(slots_[next], log);
  if (!in_hand.may_try(next)) {
    next = in_hand.first_attempt();
    co_await pause_before(slots_[next], log);
  }
  in_hand.begin_attempt(next);
  co_return next;
}

task<> concurrent_core::pause_before(const slot_state& item, call_log& log) {
  log.begin_pause();
  co_await sleep_until(item.next_attempt);
  log.end_pause();
}

void concurrent_core::call(slot_calls& calls, std::size_t slot, call_memory& memory) const {
  item_random draw(draws_, slots_[slot].identity);
  if (calls.are_tasks) {
    calls.call(slot, draw, time_left(slots_[slot]));
  } else {
    call_memory::entered inside(memory);
    calls.call(slot, draw, std::nullopt);
  }
}

executor* concurrent_core::update_home(const context& worker) noexcept {
  if (!options_.on_reactor) return worker.home;
  auto number = static_cast<std::size_t>(&worker - worker_contexts_.data());
  return worker_contexts_[number].home = &run_->runtime().reactor(number);
}

void concurrent_core::trace_levels() const {
  auto now = ring_.count();
  run_->options().trace->add_levels(
      counters().name(), {{"waiting", now.waiting}, {"working", now.working}, {"done", now.done}});
}

void concurrent_core::require_in_time(const slot_state& item, const context& execution) const {
  if (!options_.limits.any()) return;
  auto allowed = options_.limits.left(item.started - item.begun);
  auto now = clock::now();
  auto waited = waited_for_memory(execution, now) - item.waited;
  if (now - item.started - waited > allowed) throw error(errc::timed_out, call_of_function);
}

slot_calls::time_limit concurrent_core::time_left(const slot_state& item) const noexcept {
  if (!options_.limits.any()) return std::nullopt;
  return options_.limits.left(item.started - item.begun);
}

std::optional<clock::duration> concurrent_core::failed(std::size_t slot, std::string name,
                                                       bool may_retry) {
  if (stop_.stop_requested()) return std::nullopt;
  auto& item = slots_[slot];
  auto& policy = options_.policy;
  const auto attempt = item.attempts + 1;
  if (may_retry && is_worth_retrying(policy.retry, std::current_exception())) {
    random draw(run_->options().seed, item.identity.position, item.identity.part, attempt);
    auto pause = pause_after(policy.retry, attempt, draw.uniform());
    if (options_.limits.left(clock::now() + pause - item.begun).count() > 0) {
      counters().retried.fetch_add(1, std::memory_order_relaxed);
      return pause;
    }
  }
  try {
    substitute(slot);
  } catch (...) {  // is the failure of the item, instead of the one before
    item.record->failure = run_->failures().fail(counters(), {on_error::fail}, std::move(name),
                                                 item.record->origin, attempt);
    return std::nullopt;
  }
  item.record->failure =
      run_->failures().fail(counters(), policy, std::move(name), item.record->origin, attempt);
  return std::nullopt;
}

concurrent_core::call_log::call_log(concurrent_core& stage, const context& execution)
    : stage_(stage),
      context_(execution),
      trace_(stage.run_->options().trace),
      busy_(stage.counters().busy),
      pause_(stage.counters().paused),
      cpu_(stage.counters().cpu, !stage.options_.on_reactor) {}

void concurrent_core::call_log::begin_call(clock::time_point now) {
  began_ = now;
  busy_.begin(now);
  cpu_.begin();
  if (stage_.options_.on_reactor) name_step("in its function", stage_.counters().number);
}

void concurrent_core::call_log::end_call(clock::time_point now) {
  computed_ += now - began_;
  cpu_.end(now - began_);
  busy_.end(now);
}

void concurrent_core::call_log::begin_item(slot_state& item, stage_track& track,
                                           clock::time_point now) {
  item.started = now;
  if (trace_) stage_.run_->arrows().step(item.record->origin, track.number(), now);
  leave_out_waits(item, now);
  if (item.attempts == 0) item.begun = now;
  item.record->note(item_overview::doing::works, now);
}

void concurrent_core::call_log::leave_out_waits(slot_state& item, clock::time_point now) const {
  if (!stage_.options_.limits.any()) return;
  auto waited = waited_for_memory(context_, now);
  item.begun += waited - item.waited;
  item.waited = waited;
}

void concurrent_core::call_log::note(slot_state& item, std::string name, stage_track& track,
                                     clock::time_point now) {
  auto taken = now - item.started;
  auto& counters = stage_.counters();
  counters.latency.add(taken);
  if (counters.slowest.take(taken)) counters.slowest.add({name, item.record->origin, taken});
  if (!trace_) return;
  trace_->add_span(track.number(), name.empty() ? counters.name() : name, item.started, now,
                   item.record->origin);
  stage_.record_levels();
}

generator open_behind(const node_base& before, const open_context& run,
                      owner<concurrent_core> stage) {
  if (stage->options().order == item_order::completion && !run.at->facts().is_reordering())
    fatal("a stage that yields items as they finish does not say so in its facts");
  stage->start_workers(before.open_in(stage->before(run)));
  return link_base::deliver(owner<link_base>(std::move(stage)));
}

}  // namespace lade::detail
