// Splits several items into parts concurrently, for flat_map and sources of shards.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/channel.hpp>
#include <lade/context.hpp>
#include <lade/detail/common/counted.hpp>
#include <lade/detail/coroutines/owner.hpp>
#include <lade/detail/memory/demand.hpp>
#include <lade/detail/observability/overview.hpp>
#include <lade/detail/observability/stage_track.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/path_place.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/runtime/continue_on.hpp>
#include <lade/detail/stages/concurrent.hpp>
#include <lade/error.hpp>
#include <lade/lineage.hpp>
#include <lade/semaphore.hpp>
#include <lade/stats.hpp>
#include <lade/task.hpp>
#include <lade/thread_pool.hpp>
#include <lade/trace.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace lade::detail {

// A queue of parts of one item, or of all items, to the next stage. Any thread.
template <class T>
class parts_lane {
 public:
  // A part; or, without a value, the lineage of an item that has no parts.
  class part {
   public:
    part(T value, lineage positions, const path_place* place)
        : item(std::move(value)), origin(std::move(positions)), mark_(place) {}
    part(lineage positions, const path_place* place) : origin(std::move(positions)), mark_(place) {}
    std::optional<T> item;
    lineage origin;

   private:
    underway mark_;
  };

  // `behind`: the demand that the reader of the lane serves.
  parts_lane(std::size_t capacity, const context& surroundings,
             std::shared_ptr<const demand> behind)
      : parts_(capacity),
        wanted_(std::make_shared<demand>(std::move(behind))),
        claim_(wanted_),
        surroundings_(surroundings) {
    surroundings_.claim = &claim_;
  }

  // The context of the coroutines that make parts of the lane; whether its next part is awaited.
  const context& surroundings() const noexcept { return surroundings_; }
  void want(bool next) noexcept { wanted_->await(next ? demand::next : demand::none); }

  auto push(part next) { return parts_.push(std::move(next)); }
  auto pop() { return parts_.pop(); }

  // Closes the lane; the first failure counts.
  void fail(std::exception_ptr failure) noexcept {
    {
      std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::move(failure);
    }
    parts_.close();
  }
  void end() { parts_.close(); }
  void rethrow_failure() const {
    std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  channel<part> parts_;
  const std::shared_ptr<demand> wanted_;
  memory_claim claim_;
  context surroundings_;
  mutable std::mutex mutex_;
  std::exception_ptr failure_;
};

// Splits up to `concurrency` items at a time. A coroutine per item pushes its parts into a lane:
//
//   input ─ feed ─┬─ take_apart(item) ─> lane ─┬─ deliver() ─> next stage
//                 ╰─ take_apart(item) ─> lane ─╯
//
// In input order each item has a lane, and deliver() reads one after the other in the order of the
// items. In completion order all items share one lane.
// - Ownership: the generator of deliver() owns the stage; each coroutine keeps it alive. A lane
//   ends when the last coroutine that pushes to it has ended.
// - Blocking: feed suspends in room_ while `concurrency` items are in flight, and in lanes_ while
//   that many lanes are unread. take_apart suspends while its lane is full (options().buffer
//   parts). These park under their own mutexes, so no wake-up is lost.
// - Lock: mutex_ guards idle_ and in_hand_, for reports.
// - Errors: a failure of an item ends its lane and is rethrown behind its parts; a failure of the
//   input is rethrown behind all lanes.
template <class In, class Out, class Stage>
class spreading final : public std::enable_shared_from_this<spreading<In, Out, Stage>>,
                        private overviewed {
 public:
  // `shares_cpus`: whether items are split on the share of the pool for automatic stages.
  spreading(const open_context& run, stage_counters& counters, counted_ptr<const Stage> stage,
            unsigned concurrency, bool shares_cpus = false)
      : run_(run),
        counters_(counters),
        stage_(std::move(stage)),
        concurrency_(concurrency),
        room_(concurrency),
        lanes_(concurrency),
        wanted_item_(std::make_shared<demand>(run.wanted)),
        feeder_claim_(wanted()),
        feeder_context_(run.run->surroundings(stop_.get_token())),
        trace_(run.run->options().trace),
        on_consumer_stop_(run.stop, close_on_stop<spreading>{*this}) {
    for (unsigned i = 0; i < concurrency; ++i) idle_.emplace_back(counters, trace_);
    work_for(counters, feeder_context_);
    feeder_context_.place = run_.path.get();
    feeder_context_.claim = &feeder_claim_;
    parts_context_ = feeder_context_;
    stage_workers staff{.workers = concurrency, .slots = concurrency};
    if (auto* pool = stage_->options().pool) {
      staff.own_threads = pool->size();
      parts_context_.home = pool;
    } else if (auto* share = run.run->automatic_share(); share && shares_cpus) {
      staff.shared_threads = concurrency;
      parts_context_.home = share;
    }
    run.run->stages().note_workers(counters, staff);
    run.run->stages().watch(*this);
  }

  ~spreading() { run_.run->stages().unwatch(*this); }

  // The stop token of the stage before, and the demand that it serves.
  std::stop_token stop_token() const noexcept { return stop_.get_token(); }
  std::shared_ptr<const demand> wanted() const noexcept {
    return has_one_lane() ? run_.wanted : wanted_item_;
  }

  void start(async_generator<In> upstream) {
    run_.run->start(this->shared_from_this(), feeder_context_, feed(*this, std::move(upstream)));
  }

  // Yields the parts. Destroying the generator ends the stage.
  static async_generator<Out> deliver(owner<spreading> self) {
    while (auto lane = co_await self->next_lane()) {
      while (auto next = co_await self->next_of(**lane)) {
        if (!next->item) {
          co_await consume(next->origin);
          continue;
        }
        count_out(self->counters_, *next->item);
        with_lineage<Out> yielded{next->origin, *next->item};
        co_yield yielded;
      }
      (*lane)->rethrow_failure();
    }
    if (self->stop_.stop_requested()) throw error(errc::stopped, self->counters_.name());
    if (self->input_failure_) std::rethrow_exception(self->input_failure_);
  }

  void close() noexcept {
    request_stop(stop_);
    lanes_.close();
  }

 private:
  using lane = parts_lane<Out>;
  using part = typename lane::part;

  bool has_one_lane() const noexcept { return stage_->options().order == item_order::completion; }

  task<std::optional<std::shared_ptr<lane>>> next_lane() {
    wanted_item_->await(demand::next);
    parts_context_.memory->reconsider();
    auto next = co_await lanes_.pop();
    wanted_item_->await(demand::none);
    co_return next;
  }

  task<std::optional<part>> next_of(lane& from) {
    stopwatch waiting(counters_.starving);
    wanted_ = true;
    from.want(true);
    parts_context_.memory->reconsider();
    auto next = co_await from.pop();
    from.want(false);
    wanted_ = false;
    co_return next;
  }

  static task<> feed(spreading& self, async_generator<In> upstream) {
    try {
      co_await self.begin_items(upstream);
    } catch (...) {
      self.input_failure_ = std::current_exception();
    }
    self.lanes_.close();
  }

  task<> begin_items(async_generator<In>& upstream) {
    std::shared_ptr<lane> of_all;
    if (has_one_lane()) of_all = co_await begin_lane();
    while (true) {
      co_await room_.acquire();
      auto* item = co_await next_item(upstream);
      if (!item) co_return;
      bump(counters_.in);
      wanted_item_->await(demand::none);  // the awaited item has arrived
      auto to = of_all;
      if (!to) to = co_await begin_lane();
      underway mark(run_.path.get());
      auto& surroundings = to->surroundings();
      run_.run->start(
          this->shared_from_this(), surroundings,
          take_apart(*this, std::move(to), std::move(*item), upstream.origin(), std::move(mark)));
    }
  }

  task<In*> next_item(async_generator<In>& upstream) {
    stopwatch waiting(counters_.input_wait);
    co_return co_await upstream.next();
  }

  // Begins a lane and queues it for deliver(). The lane ends when the last copy of the result is
  // destroyed.
  task<std::shared_ptr<lane>> begin_lane() {
    auto read = std::make_shared<lane>(stage_->options().buffer, parts_context_, run_.wanted);
    co_await lanes_.push(read);
    co_return std::shared_ptr<lane>(read.get(), [read](lane*) { read->end(); });
  }

  static task<> take_apart(spreading& self, std::shared_ptr<lane> to, In item, lineage origin,
                           underway) {
    co_await continue_on(*self.parts_context_.home);
    auto place = self.enter(item, origin);
    try {
      bool some = false;
      auto parts =
          self.stage_->parts(std::move(item), place->name, origin, self.run_, self.counters_);
      while (auto* next = co_await self.next_part(parts, *place)) {
        some = true;
        part made(std::move(*next), parts.origin(), self.run_.path.get());
        co_await to->push(std::move(made));
      }
      part nothing(origin, self.run_.path.get());
      if (!some) co_await to->push(std::move(nothing));
    } catch (...) {
      to->fail(std::current_exception());
    }
    self.leave(place);
    self.room_.release();
  }

  // The record of one item that is being split: its track in a trace, its counters, its name.
  class hand {
   public:
    hand(stage_counters& counters, lade::trace* to)
        : track(to, counters), busy(counters.busy), cpu(counters.cpu, true) {}

    void take(const In& item, const lineage& positions) {
      name.keep(item);
      origin = positions;
      begin(clock::now());
    }
    void begin(clock::time_point now) noexcept {
      since = now;
      doing = item_overview::doing::works;
    }
    item_overview overview() const {
      return {.name = name.text(), .origin = origin, .what = doing, .since = since};
    }

    stage_track track;
    call_time::caller busy;
    cpu_sampler cpu;
    kept_name<In> name;
    lineage origin;
    std::atomic<item_overview::doing> doing = item_overview::doing::works;
    std::atomic<clock::time_point> since = clock::time_point();
  };
  using place = typename std::list<hand>::iterator;

  place enter(const In& item, const lineage& origin) {
    std::lock_guard lock(mutex_);
    auto taken = idle_.begin();
    taken->take(item, origin);
    in_hand_.splice(in_hand_.end(), idle_, taken);
    note_level();
    return taken;
  }
  void leave(place taken) {
    std::lock_guard lock(mutex_);
    idle_.splice(idle_.end(), in_hand_, taken);
    note_level();
  }
  void note_level() {
    if (trace_) trace_->add_levels(counters_.name(), {{"working", in_hand_.size()}});
  }

  task<Out*> next_part(async_generator<Out>& parts, hand& of) {
    auto begun = clock::now();
    if (trace_) run_.run->arrows().step(of.origin, of.track.number(), begun);
    of.begin(begun);
    of.busy.begin(begun);
    of.cpu.begin();
    auto* next = co_await parts.next();
    of.doing = item_overview::doing::gives_part;
    auto now = clock::now();
    of.busy.end(now);
    note_call(of, now - begun, parts.awaited());
    if (trace_) {
      auto key = of.name.text();
      auto name = key.empty() ? counters_.name() : key;
      trace_->add_span(of.track.number(), name, begun, now, of.origin);
    }
    co_return next;
  }

  // If the generator awaited something, it may have computed on another thread: no CPU time is
  // taken.
  void note_call(hand& of, clock::duration taken, bool awaited) {
    counters_.latency.add(taken);
    if (counters_.slowest.take(taken)) counters_.slowest.add({of.name.text(), of.origin, taken});
    if (awaited)
      counters_.awaited.fetch_add(taken.count(), std::memory_order_relaxed);
    else
      of.cpu.end(taken);
  }

  std::string overview(clock::time_point at) const override {
    using enum stage_overview::feeding;
    std::lock_guard lock(mutex_);
    auto free = concurrency_ - in_hand_.size();
    std::vector<item_overview> items;
    for (auto& each : in_hand_) items.push_back(each.overview());
    return to_string(counters_.name(),
                     {.slots = concurrency_,
                      .free = free,
                      .idle_workers = free,
                      .feeder = free > 0 ? waits_for_input : waits_for_room,
                      .wanted = wanted_,
                      .items = std::move(items)},
                     at);
  }

  const open_context run_;
  stage_counters& counters_;
  const counted_ptr<const Stage> stage_;
  const std::size_t concurrency_;
  semaphore room_;  // permits for items in flight
  channel<std::shared_ptr<lane>> lanes_;
  const std::shared_ptr<demand> wanted_item_;
  std::stop_source stop_;
  memory_claim feeder_claim_;
  context feeder_context_;
  context parts_context_;
  std::exception_ptr input_failure_;  // set before lanes_ is closed
  std::atomic<bool> wanted_ = false;  // the next stage waits for a part
  trace* const trace_;
  mutable std::mutex mutex_;
  std::list<hand> idle_;
  std::list<hand> in_hand_;
  std::stop_callback<close_on_stop<spreading>> on_consumer_stop_;
};

}  // namespace lade::detail
