#include <lade/continue_on.hpp>
#include <lade/detail/coroutines/parked_coroutine.hpp>
#include <lade/detail/runtime/continue_on.hpp>
#include <lade/detail/runtime/operation.hpp>
#include <lade/detail/stages/concurrent_core.hpp>
#include <lade/error.hpp>
#include <lade/random.hpp>
#include <lade/runtime.hpp>
#include <lade/sleep.hpp>

#include <utility>

#include "workers.hpp"

namespace lade::detail {

static concurrent_options completed(concurrent_options options, const run_options& run) {
  if (options.policy.retry.attempts == 0) options.policy.retry = run.retry;
  return options;
}

static link_options link_with_workers(const concurrent_options& options) {
  return {.ring = {.slots = options.slots,
                   .workers = options.workers,
                   .order = options.order,
                   .numbers_slots = options.items_at_a_time > 1,
                   .waits_for_memory = true,
                   .bytes = options.bytes,
                   .measures_feeders = true,
                   .measures_depth = true},
          .counts_items = true,
          .measures_inputs = true,
          .is_reported = true,
          .measure = options.measure};
}

// Whether something draws random numbers for an item: the function, or the pause before an attempt.
static bool must_identify(const concurrent_options& options) {
  return options.draws_random || options.items_at_a_time > 1 || options.policy.retry.attempts > 1;
}

concurrent_core::concurrent_core(const open_context& run, stage_counters& counters,
                                 const concurrent_options& options)
    : link_base(run, link_with_workers(options)),
      options_(completed(options, run_->options())),
      draws_(run, options.number),
      identities_(must_identify(options_) ? options.slots : 0) {
  count_for(counters);
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
    run_->children().start(
        shared_from_this(), execution,
        options_.on_reactor ? await_tasks({*this, execution}) : compute(*this, execution));
  start(std::move(upstream));
}

void concurrent_core::put(std::size_t slot, void* item, const lineage& origin) {
  if (!identities_.empty()) identities_[slot] = identify_(origin);
  put_item(slot, item);
}

// `co_await called_task(calls)` starts the task that a worker has got, and waits for its end.
class called_task : private completion, private parked_coroutine {
 public:
  explicit called_task(slot_calls& calls) noexcept : completion{resume_worker}, calls_(calls) {}

  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<task<>::promise_type> worker) {
    note(worker);
    return !calls_.start(worker.promise(), *this);
  }
  void await_resume() const noexcept {}

 private:
  static void resume_worker(completion& self) noexcept {
    static_cast<called_task&>(self).resume_at_home();
  }

  slot_calls& calls_;
};

task<> concurrent_core::compute(concurrent_core& self, const context& execution) {
  computing_worker worker(self, execution);
  worker.begin_function();
  auto done = slot_ring::none;
  while (true) {
    if (worker.has_attempts()) {
      co_await worker.take_attempt();
    } else {
      auto taken = co_await self.ring_.take_filled(done, worker.made_long_call());
      worker.take_filled(taken);
    }
    if (!worker.has_item()) break;
    if (worker.had_its_turn()) co_await yield_thread(*execution.home);
    if (self.run_->failures().is_behind()) co_await self.run_->failures().caught_up();
    if (worker.must_reserve()) {
      auto reserved = co_await reserve(worker.needed());
      worker.reserve(std::move(reserved));
    }
    done = worker.work();
  }
}

// Thousands of these coroutines may wait at once, and GCC 12 stores each awaiter separately in the
// frame. So rare waits are in a child coroutine.
task<> concurrent_core::await_tasks(task_worker worker) {
  worker.begin_function();
  while (true) {
    worker.take(co_await worker.next());
    if (worker.slot() == slot_ring::none) break;
    if (worker.has_moved()) co_await continue_on(worker.move_home());
    do {
      if (worker.must_wait()) co_await worker.wait();
      if (!worker.begin()) break;
      try {
        worker.start();
        co_await called_task(worker.function());
        worker.finish();
      } catch (...) {
        worker.fail(std::current_exception());
      }
    } while (worker.end());
  }
}

bool concurrent_core::has_moved(const context& worker) const noexcept {
  return &run_->runtime().reactor(number_of(worker)) != worker.home;
}

executor& concurrent_core::move_home(const context& worker) noexcept {
  auto number = number_of(worker);
  auto& home = run_->runtime().reactor(number);
  worker_contexts_[number].home = &home;
  return home;
}

void concurrent_core::trace_levels() const {
  auto now = ring_.count();
  run_->options().trace->add_levels(
      counters().name(), {{"waiting", now.waiting}, {"working", now.working}, {"done", now.done}});
}

void concurrent_core::require_in_time(const called_item& item, const context& execution) const {
  if (!options_.limits.any()) return;
  auto allowed = options_.limits.left(item.started - item.first_started);
  auto now = clock::now();
  auto waited = waited_for_memory(execution, now) - item.waited;
  if (now - item.started - waited > allowed) throw error(errc::timed_out, call_of_function);
}

slot_calls::time_limit concurrent_core::time_left(const called_item& item) const noexcept {
  if (!options_.limits.any()) return std::nullopt;
  return options_.limits.left(item.started - item.first_started);
}

std::optional<clock::duration> concurrent_core::failed(const called_item& item, std::string name) {
  if (stop_.stop_requested()) return std::nullopt;
  auto& policy = options_.policy;
  auto& record = this->record(item.slot);
  const auto attempt = item.attempts + 1;
  if (item.kept && is_worth_retrying(policy.retry, std::current_exception())) {
    auto [position, part] = identity(item.slot);
    random draw(run_->options().seed, position, part, attempt);
    auto pause = pause_after(policy.retry, attempt, draw.uniform());
    if (options_.limits.left(clock::now() + pause - item.first_started).count() > 0) {
      counters().retried.fetch_add(1, std::memory_order_relaxed);
      return pause;
    }
  }
  try {
    substitute(item.slot);
  } catch (...) {  // is the failure of the item, instead of the one before
    record.failure = run_->failures().fail(counters(), {on_error::fail}, std::move(name),
                                           record.origin, attempt);
    return std::nullopt;
  }
  record.failure =
      run_->failures().fail(counters(), policy, std::move(name), record.origin, attempt);
  return std::nullopt;
}

generator open_behind(const node_base& before, const open_context& run,
                      owner<concurrent_core> stage) {
  if (stage->options().order == item_order::completion && !run.at->facts().is_reordering())
    fatal("a stage that yields items as they finish does not say so in its facts");
  stage->start_workers(before.open_in(stage->before(run)));
  return link_base::deliver(owner<link_base>(std::move(stage)));
}

}  // namespace lade::detail
