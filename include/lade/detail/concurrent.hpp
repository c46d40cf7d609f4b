// The concurrent stage: a feeder, workers and a ring of slots between two generators.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/autotune.hpp>
#include <lade/detail/operation.hpp>
#include <lade/detail/overview.hpp>
#include <lade/detail/owner.hpp>
#include <lade/detail/path_place.hpp>
#include <lade/detail/run_state.hpp>
#include <lade/detail/slot_ring.hpp>
#include <lade/pipeline.hpp>
#include <lade/sleep.hpp>
#include <lade/task.hpp>
#include <lade/this_context.hpp>
#include <lade/thread_pool.hpp>
#include <lade/trace.hpp>

#include <any>
#include <atomic>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace lade::detail {

// What a function that returns T, or a task of it, gives in the end.
template <class T>
struct outcome_of {
  using type = T;
  static constexpr bool is_task = false;
};
template <class T>
struct outcome_of<task<T>> {
  using type = T;
  static constexpr bool is_task = true;
};

// Puts what a function has given into a slot; an empty optional leaves it empty.
template <class T, class Result>
void assign(std::optional<T>& slot, Result&& result) {
  if constexpr (std::same_as<std::remove_cvref_t<Result>, std::optional<T>>)
    slot = std::forward<Result>(result);
  else
    slot.emplace(std::forward<Result>(result));
}

// Puts the item that stands in for a failed one into a slot, if there is one.
template <class T>
void substitute(std::optional<T>& slot, const std::any& item) {
  if constexpr (std::copy_constructible<T>)
    if (auto* given = std::any_cast<T>(&item)) slot.emplace(*given);
}

// `co_await consume(origin)` counts a lineage to what the awaiting coroutine has consumed.
class consume {
 public:
  explicit consume(const lineage& origin) noexcept : origin_(origin) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) const {
    if (auto* base = base_of(coroutine); base && base->consumed) base->consumed->merge(origin_);
    return false;
  }
  void await_resume() const noexcept {}

 private:
  const lineage& origin_;
};

struct concurrent_options {
  std::size_t slots = 1;
  unsigned workers = 1;
  bool on_reactor = false;
  thread_pool* pool = nullptr;  // where workers compute; null: the runtime's
  item_order order = item_order::input;
  failure_policy policy = {};
  std::any substitute = {};
  time_limits limits = {};
  std::optional<tuner::setting> tuned_from = {};  // if it may change

  // With as much room behind the workers, if there is another number of them.
  concurrent_options with(std::optional<unsigned> other_workers) const {
    auto result = *this;
    if (!other_workers || workers == 0) return result;
    result.slots = slots - workers + *other_workers;
    result.workers = *other_workers;
    result.tuned_from.reset();
    return result;
  }
};

// What tells the items of one stage apart, whatever the threads do: the last source position that
// an item came from, and its number among the items that share it (parts of a flat_map).
struct item_identity {
  std::uint64_t position = 0;
  std::uint64_t part = 0;
};

// Identifies the items of a stage, one after the other.
class identify {
 public:
  item_identity operator()(const lineage& origin) noexcept {
    auto ranges = origin.ranges();
    auto position = ranges.empty() ? 0 : ranges.back().last;
    last_ = {position, started_ && position == last_.position ? last_.part + 1 : 0};
    started_ = true;
    return last_;
  }

 private:
  item_identity last_;
  bool started_ = false;
};

// What a worker calls.
template <class Work>
struct worker_of_work {
  using type = const Work&;
};
template <class Work>
  requires requires { typename Work::worker; }
struct worker_of_work<Work> {
  using type = typename Work::worker;
};
template <class Work>
using worker_of = typename worker_of_work<Work>::type;

// Runs coroutines of its own beside the stages: one feeder, which fills slots from the generator
// before, and workers, which apply a function to them. Ends with the generator of `deliver`.
template <class In, class Out>
class concurrent_stage : public std::enable_shared_from_this<concurrent_stage<In, Out>>,
                         private overviewed,
                         private tunable {
 public:
  concurrent_stage(const opening& run, stage_counters& counters, const concurrent_options& options)
      : run_(run.run),
        counters_(counters),
        options_(options),
        place_(run.place),
        slots_(options.slots),
        ring_(options.slots, options.workers, options.order, run_->runtime().pool(),
              run_->runtime().memory(), counters),
        feeder_context_(run_->surroundings(stop_.get_token())),
        on_consumer_stop_(run.stop, close_on_stop<concurrent_stage>{*this}) {
    run_->note_workers(counters, options.workers, options.on_reactor, options.slots);
    feeder_context_.stage = &counters_;
    feeder_context_.place = &place_;
    worker_contexts_.assign(options.workers, feeder_context_);
    if (options.pool) {
      counters_.own_threads = options.pool->size();
      for (auto& each : worker_contexts_) each.home = options.pool;
    }
    if (options.workers > 0) run_->note_tracing(counters);
    run_->watch(*this);
    if (options.tuned_from) {
      set(*options.tuned_from);
      run_->tune(*this, counters_, *options.tuned_from, options.workers);
    }
    if (!options.on_reactor) return;
    for (std::size_t i = 0; i < options.workers; ++i)
      worker_contexts_[i].home = &run_->runtime().reactor(i);
  }

  ~concurrent_stage() {
    run_->unwatch(*this);
    if (options_.tuned_from) run_->untune(*this);
  }

  // What the stage before is stopped by.
  std::stop_token stop_token() const noexcept { return stop_.get_token(); }

  // Starts the coroutines. `work(in, identity)` gives an Out, or a task of one; if there is a
  // Work::worker, every worker makes one of the work and calls that.
  template <class Work>
  void start(async_generator<In> upstream, Work work) {
    auto self = this->shared_from_this();
    auto shared = std::make_shared<const Work>(std::move(work));
    for (auto& surroundings : worker_contexts_)
      run_->children().start(run_in(surroundings, self, work_on(self, *surroundings.home, shared)));
    run_->children().start(run_in(feeder_context_, self, feed(self, std::move(upstream))));
  }

  // A stage without workers: items pass through the slots as they are.
  void start(async_generator<In> upstream)
    requires std::same_as<In, Out>
  {
    auto self = this->shared_from_this();
    run_->children().start(run_in(feeder_context_, self, feed(self, std::move(upstream))));
  }

  // The stage's items. Destroying the generator, also one that was never asked for an item, ends
  // the stage.
  static async_generator<Out> deliver(std::shared_ptr<concurrent_stage> stage) {
    return deliver_from(owner<concurrent_stage>(std::move(stage)));
  }

  void close() noexcept {
    stop_.request_stop();
    ring_.close();
  }

 private:
  struct slot {
    std::optional<In> in;
    std::optional<Out> out;  // stays empty when the item is dropped
    std::exception_ptr failure;
    lineage origin;
    item_identity identity;
    clock::time_point begun;  // when the function was first called for it
    underway mark;

    // For overviews of items that are in flight.
    std::string name;
    std::atomic<item_overview::doing> doing = item_overview::doing::waits_for_worker;
    std::atomic<clock::time_point> since = clock::time_point();

    void note(item_overview::doing what, clock::time_point now) noexcept {
      since.store(now, std::memory_order_relaxed);
      doing.store(what, std::memory_order_relaxed);
    }
  };

  static constexpr auto late = "wait for the stage's function";

  static async_generator<Out> deliver_from(owner<concurrent_stage> self) {
    std::size_t taken = slot_ring::none;
    while ((taken = co_await self->ring_.take_done(taken)) != slot_ring::none) {
      auto& item = self->slots_[taken];
      if (item.failure) {
        self->close();
        std::rethrow_exception(item.failure);
      }
      if (item.out) {
        bump(self->counters_.out);
        with_lineage<Out> yielded{item.origin, *item.out};
        co_yield yielded;
      } else {
        co_await consume(item.origin);
      }
      item.out.reset();
      item.mark = {};
    }
    if (self->stop_.stop_requested()) throw error(errc::stopped, self->counters_.name());
    if (self->input_failure_) std::rethrow_exception(self->input_failure_);
  }

  // Keeps the stage alive while the work runs in surroundings that are part of it.
  static task<> run_in(const context& surroundings, std::shared_ptr<concurrent_stage>,
                       task<> work) {
    co_await under(surroundings, std::move(work));
  }

  static task<> feed(std::shared_ptr<concurrent_stage> self, async_generator<In> upstream) {
    try {
      co_await self->fill_slots(upstream);
    } catch (...) {
      self->input_failure_ = std::current_exception();
    }
    self->ring_.end_input();
  }

  task<> fill_slots(async_generator<In>& upstream) {
    identify identity;
    auto last = slot_ring::none;
    while (true) {
      auto free = co_await ring_.take_free(std::exchange(last, slot_ring::none));
      if (free == slot_ring::none) co_return;
      In* item = nullptr;
      {
        stopwatch waiting(counters_.input_wait);
        item = co_await upstream.next();
      }
      if (!item) co_return;
      bump(counters_.in);
      auto& filled = slots_[free];
      filled.origin = upstream.origin();
      filled.identity = identity(filled.origin);
      filled.failure = nullptr;
      filled.mark = underway(place_);
      filled.doing.store(item_overview::doing::waits_for_worker, std::memory_order_relaxed);
      if (run_->watches_stalls()) filled.name = name_of(*item);
      if constexpr (std::same_as<In, Out>) {
        if (options_.workers == 0) {
          filled.out.emplace(std::move(*item));
          ring_.fill_done(free);
          continue;
        }
      }
      filled.in.emplace(std::move(*item));
      last = free;
    }
  }

  template <class Work>
  static task<> work_on(std::shared_ptr<concurrent_stage> self, executor& home,
                        std::shared_ptr<const Work> work) {
    auto* trace = self->run_->options().trace;
    auto track = trace ? trace->add_track(self->counters_.name()) : 0;
    cpu_sampler cpu(self->counters_.cpu, !self->options_.on_reactor);
    co_await continue_on(home);
    auto&& call = self->begin_worker(*work);
    std::size_t taken = slot_ring::none;
    while ((taken = co_await self->ring_.take_filled(taken, home)) != slot_ring::none) {
      auto& item = self->slots_[taken];
      item.begun = clock::now();
      for (unsigned attempt = 1;; ++attempt) {
        auto kept = self->keep_for_retry(item, attempt);
        std::optional<clock::duration> pause;
        kept_name<In> name(*item.in);
        hooked_call visit(*self->run_, self->counters_, *item.in, item.origin, attempt);
        auto started = attempt == 1 ? item.begun : clock::now();
        item.note(item_overview::doing::works, started);
        cpu.begin();
        try {
          using result = decltype(call(std::move(*item.in), item.identity));
          if constexpr (outcome_of<result>::is_task)
            assign(item.out, co_await self->in_time(call(std::move(*item.in), item.identity),
                                                    started - item.begun));
          else
            assign(item.out, call(std::move(*item.in), item.identity));
          self->require_in_time(item, started);
          visit.leave(nullptr);
        } catch (...) {
          visit.leave(std::current_exception());
          pause = self->failed(item, name.text(), attempt, std::move(kept));
        }
        auto ended = clock::now();
        cpu.end(ended - started);
        self->note_time(ended - started);
        if (trace) self->record(*trace, track, name.text(), started, ended, item.origin);
        if (pause) item.note(item_overview::doing::pauses, ended);
        if (!pause || !co_await sleep_until(clock::now() + *pause)) break;
      }
      item.in.reset();
      if (trace) self->note_levels(*trace);
    }
  }

  template <class Work>
  worker_of<Work> begin_worker(const Work& work) {
    try {
      return worker_of<Work>(work);
    } catch (...) {
      std::rethrow_exception(run_->fail(counters_, {on_error::fail}, {}, {}));
    }
  }

  // The work, asked to stop when the time of its item is over.
  template <class T>
  task<T> in_time(task<T> work, clock::duration since_first) const {
    if (!options_.limits.any()) return work;
    return with_timeout(options_.limits.left(since_first), std::move(work), late);
  }

  // A result that comes too late is none.
  void require_in_time(const slot& item, clock::time_point started) const {
    if (options_.limits.any() &&
        clock::now() - started > options_.limits.left(started - item.begun))
      throw error(errc::timed_out, late);
  }

  void record(trace& to, trace::track track, const std::string& name, clock::time_point started,
              clock::time_point ended, const lineage& origin) const {
    to.add_span(track, name.empty() ? counters_.name() : name, started, ended, origin,
                run_->sees_items_first(counters_));
  }

  void note_levels(trace& to) const {
    auto now = ring_.count();
    to.add_levels(counters_.name(),
                  {{"waiting", now.waiting}, {"working", now.working}, {"done", now.done}});
  }

  // The item as it is, if the function may be called for it once more.
  std::optional<In> keep_for_retry(const slot& item, unsigned attempt) const {
    if constexpr (std::copy_constructible<In>)
      if (attempt < options_.policy.retry.attempts) return item.in;
    return std::nullopt;
  }

  // For the catch block of an attempt: the pause before the next, or nothing if it was the last.
  // Nobody wants what a stopped stage was working on: that it was interrupted is no failure.
  std::optional<clock::duration> failed(slot& item, std::string name, unsigned attempt,
                                        std::optional<In> kept) {
    item.out.reset();
    if (stop_.stop_requested()) return std::nullopt;
    auto& policy = options_.policy;
    if (kept && is_worth_retrying(policy.retry, std::current_exception())) {
      random draw(run_->options().seed, item.identity.position, item.identity.part, attempt);
      auto pause = pause_after(policy.retry, attempt, draw.uniform());
      if (options_.limits.left(clock::now() + pause - item.begun).count() > 0) {
        item.in.emplace(std::move(*kept));
        counters_.retried.fetch_add(1, std::memory_order_relaxed);
        return pause;
      }
    }
    item.failure = run_->fail(counters_, policy, std::move(name), item.origin, attempt);
    if (!item.failure) substitute(item.out, options_.substitute);
    return std::nullopt;
  }

  void set(const tuner::setting& now) override {
    ring_.bound(now.concurrency, now.concurrency + now.buffer);
  }

  std::string overview(clock::time_point at) const override {
    using enum item_overview::doing;
    auto now = ring_.look([this](std::size_t number, bool is_done) {
      auto& item = slots_[number];
      return item_overview{.name = item.name,
                           .origin = item.origin,
                           .what = is_done ? done : item.doing.load(std::memory_order_relaxed),
                           .since = item.since.load(std::memory_order_relaxed)};
    });
    return to_string(counters_.name(), now, at);
  }

  void note_time(clock::duration taken) noexcept {
    counters_.busy.fetch_add(taken.count(), std::memory_order_relaxed);
    counters_.latency.add(taken);
  }

  std::shared_ptr<run_state> run_;
  stage_counters& counters_;
  concurrent_options options_;
  const path_place place_;
  std::vector<slot> slots_;
  std::stop_source stop_;
  slot_ring ring_;
  context feeder_context_;
  std::vector<context> worker_contexts_;
  std::exception_ptr input_failure_;
  std::stop_callback<close_on_stop<concurrent_stage>> on_consumer_stop_;
};

// Opens the upstream, starts a stage behind it, and gives the stage's generator.
template <class In, class Out, class Work>
async_generator<Out> open_concurrent(const pipeline<In>& in, const opening& run,
                                     const std::string& name, const concurrent_options& options,
                                     Work work) {
  auto& counters = run.add_stage(name);
  auto stage =
      std::make_shared<concurrent_stage<In, Out>>(run, counters, options.with(run.concurrency));
  auto upstream = run.until(stage->stop_token());
  if (options.order == item_order::completion)
    upstream = upstream.reordering("a stage that gives items as they finish");
  stage->start(in.open(upstream), std::move(work));
  return concurrent_stage<In, Out>::deliver(stage);
}

}  // namespace lade::detail
