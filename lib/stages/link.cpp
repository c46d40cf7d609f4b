#include <lade/detail/observability/observer.hpp>
#include <lade/detail/stages/drain.hpp>
#include <lade/detail/stages/link.hpp>
#include <lade/detail/stages/split.hpp>
#include <lade/error.hpp>
#include <lade/held.hpp>
#include <lade/trace.hpp>

#include <utility>

namespace lade::detail {

link_base::link_base(std::shared_ptr<run_state> run, const link_options& options,
                     std::shared_ptr<demand> wanted, std::shared_ptr<const path_place> path,
                     std::stop_token consumer)
    : run_(std::move(run)),
      ring_(options.ring, run_->runtime().memory(), std::move(wanted)),
      stop_(options.stops_inputs ? std::stop_source() : std::stop_source(std::nostopstate)),
      context_(run_->make_context(options.stops_inputs ? stop_.get_token() : consumer)),
      options_(options),
      trace_(run_->options().trace),
      path_(std::move(path)),
      records_(options.ring.slots),
      marks_(options.marks_items && path_ ? options.ring.slots : 0),
      reported_(options.is_reported && run_->watches_stalls() ? options.ring.slots : 0),
      claim_(ring_.wanted()),
      live_(options.ends_after),
      inputs_(options.ring.feeders),
      on_consumer_stop_(std::move(consumer), close_on_stop<link_base>{*this}) {
  if (!options_.carries_results) context_.claim = &claim_;
  context_.place = path_.get();
  if (live_ == 0) ring_.end_input();
}

open_context link_base::before(const open_context& run) const {
  auto input = run.until(stop_.get_token());
  return options_.carries_results ? input : input.taken_by(ring_.wanted());
}

void link_base::count_for(stage_counters& counters) {
  counters_ = &counters;
  ring_.count_for(counters);
  work_for(counters, context_);
  if (!reported_.empty()) report_.emplace(*this);
}

void link_base::start(generator input, std::shared_ptr<const void> keep_alive) {
  start(drain(std::move(input), sink(*this, std::move(keep_alive))));
}

void link_base::start(task<> drain) {
  run_->children().start(shared_from_this(), context_, std::move(drain));
}

void link_base::start_in(std::shared_ptr<const context> execution, generator input) {
  const auto& where = *execution;
  run_->children().start(std::move(execution), where, drain(std::move(input), sink(*this)));
}

// A sink of a link whose input is ended by another coroutine. That one gets the failure.
class rethrowing_sink : public link_base::sink {
 public:
  using link_base::sink::sink;
  void end(const std::exception_ptr& failure) {
    pass_on();
    if (failure) std::rethrow_exception(failure);
  }
};

task<> link_base::fill_from(generator input) {
  return drain(std::move(input), rethrowing_sink(*this));
}

std::optional<task<>> link_base::sink::put(void* item, const lineage& origin) {
  link_.fill(slot_, item, origin);
  filled_ = true;
  if (link_.options_.ring.workers == 0) link_.record_levels();
  return std::nullopt;
}

void link_base::sink::put_rest(const lineage& origin) {
  if (!link_.options_.delivers_rest || origin.empty()) return;
  link_.fill_with_rest(slot_, origin);
  filled_ = true;
}

void link_base::sink::end(std::exception_ptr failure) noexcept {
  pass_on();
  link_.end_input(std::move(failure));
}

void link_base::sink::pass_on() noexcept {
  const auto slot = std::exchange(slot_, slot_ring::none);
  if (slot == slot_ring::none) return;
  if (filled_)
    link_.ring_.fill(slot);
  else
    link_.ring_.return_free(slot);
}

void link_base::fill(std::size_t slot, void* item, const lineage& origin) {
  if (options_.counts_items) count_in();
  auto& record = records_[slot];
  record.origin = origin;
  record.failure = nullptr;
  mark(slot);
  if (!reported_.empty()) report_waiting(slot, item);
  if (options_.ring.workers == 0) measure_result(slot, item);
  if (options_.carries_results) path_->split->record_made(path_->path, ring_.bytes(slot));
  put(slot, item, origin);
  if (options_.is_output) estimate_memory();
}

void link_base::estimate_memory() noexcept {
  auto mean = run_->stages().allocated_bytes() / ++filled_;
  counters_->most_at_once.store(mean, std::memory_order_relaxed);
}

void link_base::report_waiting(std::size_t slot, const void* item) {
  auto& reported = reported_[slot];
  reported.doing.store(item_overview::doing::waits_for_worker, std::memory_order_relaxed);
  reported.name = name_of_item(item);
}

void link_base::begin_input_wait() noexcept {
  if (!measures_inputs()) return;
  if (has_one_input()) return counters_->input_wait.begin(clock::now());
  std::lock_guard lock(mutex_);
  if (++awaited_ == inputs_) counters_->input_wait.begin(clock::now());
}

void link_base::end_input_wait() noexcept {
  if (!measures_inputs()) return;
  if (has_one_input()) return counters_->input_wait.end(clock::now());
  std::lock_guard lock(mutex_);
  if (awaited_-- == inputs_) counters_->input_wait.end(clock::now());
}

void link_base::count_in() noexcept {
  if (has_one_input())
    increment(counters_->in);
  else
    counters_->in.fetch_add(1, std::memory_order_relaxed);
}

void link_base::fill_with_rest(std::size_t slot, const lineage& rest) {
  auto& record = records_[slot];
  record.origin = rest;
  record.failure = nullptr;
  mark(slot);
}

void link_base::expect_input() noexcept {
  std::lock_guard lock(mutex_);
  ++live_;
}

void link_base::expect_failure() noexcept {
  std::lock_guard lock(mutex_);
  patient_ = true;
}

void link_base::end_input(std::exception_ptr failure) noexcept {
  bool over = false;
  {
    std::lock_guard lock(mutex_);
    if (measures_inputs() && awaited_ == --inputs_ && awaited_ > 0)
      counters_->input_wait.begin(clock::now());
    if (live_ == 0) return;
    live_ = failure && !patient_ ? 0 : live_ - 1;
    if (!failure_) failure_ = std::move(failure);
    over = live_ == 0;
  }
  if (over) ring_.end_input();
}

std::exception_ptr link_base::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

generator link_base::deliver(owner<link_base> self) {
  auto taken = slot_ring::none;
  while (true) {
    self->begin_wait();
    taken = co_await self->ring_.take_done(taken);
    self->end_wait(taken);
    if (taken == slot_ring::none || self->is_stopped()) break;
    auto& record = self->records_[taken];
    if (record.failure) {
      self->close();
      std::rethrow_exception(record.failure);
    }
    if (auto* result = self->result(taken)) {
      if (self->options_.counts_items) self->count_result(taken);
      address_with_lineage yielded{record.origin, result};
      co_yield yielded;
    } else {
      co_await consume(record.origin);
    }
    self->drop_result(taken);
    self->unmark(taken);
  }
  if (self->is_at_standstill()) co_return;  // the split reports why
  if (self->is_stopped()) throw error(errc::stopped, self->counters_->name());
  if (auto failure = self->failure()) std::rethrow_exception(failure);
}

void link_base::begin_wait() {
  if (options_.carries_results) path_->split->record_awaited(path_->path);
}

void link_base::end_wait(std::size_t taken) {
  if (!options_.carries_results) return;
  const auto bytes = taken == slot_ring::none ? 0 : ring_.bytes(taken);
  path_->split->record_taken(path_->path, bytes);
}

bool link_base::is_at_standstill() const {
  return options_.carries_results && path_->split->stuck().has_value();
}

void link_base::close() noexcept {
  stop_.request_stop();
  ring_.close();
}

void link_base::trace_levels() const {
  trace_->add_levels(counters_->name(), {{"done", ring_.count().done}});
}

void link_base::reported_item::note(item_overview::doing what, clock::time_point now) noexcept {
  since.store(now, std::memory_order_relaxed);
  doing.store(what, std::memory_order_relaxed);
}

link_base::report::report(const link_base& reported) : link_(reported) {
  link_.run_->stages().watch(*this);  // last: the destructor does not run if this throws
}

link_base::report::~report() { link_.run_->stages().unwatch(*this); }

std::string link_base::report::overview(clock::time_point at) const {
  auto now = link_.ring_.look([this](std::size_t slot, bool is_done) {
    auto& item = link_.reported_[slot];
    return item_overview{
        .name = item.name,
        .origin = link_.records_[slot].origin,
        .what = is_done ? item_overview::doing::done : item.doing.load(std::memory_order_relaxed),
        .since = item.since.load(std::memory_order_relaxed)};
  });
  return to_string(link_.counters_->name(), now, at);
}

void link_base::tune(const stage_key& key, const tuner& begin) {
  tuning_.emplace(*this, key, begin);
}

link_base::tuning::tuning(link_base& tuned, const stage_key& key, const tuner& begin)
    : link_(tuned) {
  link_.run_->tuned().open(*this, key, *link_.counters_, begin);
  begin_tuning(link_.run_);
}

link_base::tuning::~tuning() { link_.run_->tuned().close(*this); }

// In an output queue, the feeder and the consumer hold one item each in addition to the ready ones.
std::size_t link_base::tuning::slots_at(const tuner::setting& now) const noexcept {
  const std::size_t held = now.concurrency + now.buffer.value_or(0);
  return std::min(held + (link_.options_.is_output ? 2 : 0), link_.options_.ring.slots);
}

void link_base::tuning::set(const tuner::setting& now) {
  link_.ring_.bound(now.concurrency, slots_at(now));
}

}  // namespace lade::detail
