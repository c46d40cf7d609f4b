#include <lade/detail/activity.hpp>
#include <lade/detail/concurrent_core.hpp>
#include <lade/detail/observer.hpp>
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

concurrent_core::concurrent_core(const opening& run, stage_counters& counters,
                                 const concurrent_options& options)
    : run_(run.run),
      counters_(counters),
      options_(completed(options, run_->options())),
      place_(run.place),
      slots_(options.slots),
      ring_(options.slots, options.workers, options.order, run_->runtime().pool(),
            run_->runtime().memory(), counters, run.wanted),
      feeder_claim_(ring_.wanted()),
      feeder_context_(run_->surroundings(stop_.get_token())),
      on_consumer_stop_(run.stop, close_on_stop<concurrent_core>{*this}) {
  stage_workers staff{
      .workers = options.workers, .on_reactor = options.on_reactor, .slots = options.slots};
  work_for(counters, feeder_context_);
  feeder_context_.place = &place_;
  feeder_context_.claim = &feeder_claim_;
  worker_contexts_.assign(options.workers, feeder_context_);
  for (auto& each : worker_contexts_) each.claim = &worker_claims_.emplace_back(ring_.wanted());
  if (options.pool) {
    staff.own_threads = options.pool->size();
    for (auto& each : worker_contexts_) each.home = options.pool;
  } else if (auto* share = run_->automatic_share(); share && options.shares_cpus) {
    staff.shared_threads = options.workers;
    for (auto& each : worker_contexts_) each.home = share;
  }
  if (options.on_reactor)
    for (std::size_t i = 0; i < options.workers; ++i)
      worker_contexts_[i].home = &run_->runtime().reactor(i);
  run_->note_workers(counters, staff);
  if (options_.shares_cpus)
    run_->tuned().list(run.key(), {counters.name(), options_.workers, options_.buffer});
  registered_.emplace(*this, run.key());
}

concurrent_core::registration::registration(concurrent_core& stage, const stage_key& key)
    : stage_(stage) {
  stage_.run_->watch(*this);
  if (!stage_.options_.tuned_by) return;
  stage_.run_->tuned().open(*this, key, stage_.counters_, *stage_.options_.tuned_by);
  begin_tuning(stage_.run_);
}

concurrent_core::registration::~registration() {
  stage_.run_->unwatch(*this);
  if (stage_.options_.tuned_by) stage_.run_->tuned().close(*this);
}

void concurrent_core::close() noexcept {
  stop_.request_stop();
  ring_.close();
}

void concurrent_core::note_input(slot_state& filled, const lineage& origin,
                                 const item_identity& identity) {
  bump(counters_.in);
  filled.origin = origin;
  filled.identity = identity;
  filled.failure = nullptr;
  filled.mark = underway(place_);
  filled.doing.store(item_overview::doing::waits_for_worker, std::memory_order_relaxed);
}

executor* concurrent_core::update_home(const context& worker) noexcept {
  if (!options_.on_reactor) return worker.home;
  auto number = static_cast<std::size_t>(&worker - worker_contexts_.data());
  return worker_contexts_[number].home = &run_->runtime().reactor(number);
}

void concurrent_core::note_levels() const {
  auto* trace = run_->options().trace;
  if (!trace) return;
  auto now = ring_.count();
  trace->add_levels(counters_.name(),
                    {{"waiting", now.waiting}, {"working", now.working}, {"done", now.done}});
}

void concurrent_core::require_in_time(const slot_state& item, const context& surroundings) const {
  if (!options_.limits.any()) return;
  auto allowed = options_.limits.left(item.started - item.begun);
  auto now = clock::now();
  auto waited = waited_for_memory(surroundings, now) - item.waited;
  if (now - item.started - waited > allowed) throw error(errc::timed_out, late);
}

std::chrono::nanoseconds concurrent_core::time_left(const slot_state& item) const noexcept {
  return options_.limits.left(item.started - item.begun);
}

std::optional<clock::duration> concurrent_core::failed(slot_state& item, std::string name,
                                                       unsigned attempt, bool may_retry) {
  if (stop_.stop_requested()) return std::nullopt;
  auto& policy = options_.policy;
  if (may_retry && is_worth_retrying(policy.retry, std::current_exception())) {
    random draw(run_->options().seed, item.identity.position, item.identity.part, attempt);
    auto pause = pause_after(policy.retry, attempt, draw.uniform());
    if (options_.limits.left(clock::now() + pause - item.begun).count() > 0) {
      counters_.retried.fetch_add(1, std::memory_order_relaxed);
      return pause;
    }
  }
  item.failure = run_->fail(counters_, policy, std::move(name), item.origin, attempt);
  return std::nullopt;
}

void concurrent_core::registration::set(const tuner::setting& now) {
  stage_.ring_.bound(now.concurrency, now.concurrency + now.buffer);
}

std::string concurrent_core::registration::overview(clock::time_point at) const {
  using enum item_overview::doing;
  auto now = stage_.ring_.look([this](std::size_t number, bool is_done) {
    auto& item = stage_.slots_[number];
    return item_overview{.name = item.name,
                         .origin = item.origin,
                         .what = is_done ? done : item.doing.load(std::memory_order_relaxed),
                         .since = item.since.load(std::memory_order_relaxed)};
  });
  return to_string(stage_.counters_.name(), now, at);
}

void concurrent_core::slot_state::note(item_overview::doing what, clock::time_point now) noexcept {
  since.store(now, std::memory_order_relaxed);
  doing.store(what, std::memory_order_relaxed);
}

concurrent_core::call_log::call_log(concurrent_core& stage, const context& surroundings)
    : stage_(stage),
      surroundings_(surroundings),
      trace_(stage.run_->options().trace),
      track_(trace_, stage.counters_),
      busy_(stage.counters_.busy),
      cpu_(stage.counters_.cpu, !stage.options_.on_reactor) {}

void concurrent_core::call_log::begin(slot_state& item, unsigned attempt) {
  item.started = clock::now();
  if (trace_) stage_.run_->arrows().step(item.origin, track_.number(), item.started);
  if (attempt == 1) item.begun = item.started;
  if (stage_.options_.limits.any()) item.waited = waited_for_memory(surroundings_, item.started);
  item.note(item_overview::doing::works, item.started);
  busy_.begin(item.started);
  cpu_.begin();
  if (stage_.options_.on_reactor) name_step("in its function", &stage_.counters_);
}

void concurrent_core::call_log::end(slot_state& item, std::string name, clock::time_point ended,
                                    std::optional<clock::duration> pause) {
  if (stage_.options_.limits.any())  // which such a wait does not count to
    item.begun += waited_for_memory(surroundings_, ended) - item.waited;
  auto taken = ended - item.started;
  auto& counters = stage_.counters_;
  computed_ += taken;
  cpu_.end(taken);
  busy_.end(ended);
  counters.latency.add(taken);
  if (counters.slowest.take(taken)) counters.slowest.add({name, item.origin, taken});
  if (pause) item.note(item_overview::doing::pauses, ended);
  if (!trace_) return;
  trace_->add_span(track_.number(), name.empty() ? counters.name() : name, item.started, ended,
                   item.origin);
  stage_.note_levels();
}

}  // namespace lade::detail
