// concurrent_flat_map: splits several items into parts concurrently, for flat_map and sources of
// shards.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/autotune.hpp>
#include <lade/context.hpp>
#include <lade/continue_on.hpp>
#include <lade/detail/common/counted.hpp>
#include <lade/detail/coroutines/owner.hpp>
#include <lade/detail/data/item_bytes.hpp>
#include <lade/detail/memory/demand.hpp>
#include <lade/detail/observability/observer.hpp>
#include <lade/detail/observability/overview.hpp>
#include <lade/detail/observability/stage_counters.hpp>
#include <lade/detail/observability/stage_track.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/path_place.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/pipeline/stage_key.hpp>
#include <lade/detail/pipeline/tuned_stages.hpp>
#include <lade/detail/stages/drain.hpp>
#include <lade/detail/stages/link.hpp>
#include <lade/detail/stages/permits.hpp>
#include <lade/lineage.hpp>
#include <lade/task.hpp>
#include <lade/thread_pool.hpp>
#include <lade/trace.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lade::detail {

// Splits up to `concurrency` items at a time. Each item's parts are drained into a link, its
// branch; the branches are items of another link:
//
//   upstream ─ branch_sink ─> [ branch, branch, ... ] ─╮
//            parts(item) ───> [ parts ] ───────────────┼─ deliver() ─> next stage
//            parts(item) ───> [ parts ] ───────────────╯
//
// In input order each item has a branch, and deliver() reads one after the other in the order of
// the items. In completion order all items share one branch, which has a slot for each item in
// flight and for each part that waits.
// - Ownership: the generator of deliver() owns the stage; each coroutine keeps it alive.
// - Blocking: the branch_sink suspends in room_ while `concurrency` items are in flight, and in the
//   link of branches while that many are unread. parts() suspends while its branch is full
//   (options().buffer parts).
// - Memory: in input order the branch that is read has the demand of the next stage. In completion
//   order the item that was started first has it; without items in flight, the upstream.
// - Lock: mutex_ guards the lists of items and workers, and numbers_.
// - Errors: a failure of an item ends its branch and is rethrown after its parts; a failure of the
//   upstream is rethrown after all branches.
template <class In, class Out, class Stage>
class concurrent_flat_map final
    : public std::enable_shared_from_this<concurrent_flat_map<In, Out, Stage>>,
      private overviewed,
      private tunable {
 public:
  // `shares_cpus`: whether items are split on the share of the pool for automatic stages.
  concurrent_flat_map(const open_context& run, stage_counters& counters,
                      counted_ptr<const Stage> stage, unsigned concurrency,
                      bool shares_cpus = false)
      : run_(run),
        counters_(counters),
        stage_(std::move(stage)),
        concurrency_(concurrency),
        room_(concurrency),
        home_(&run.run->runtime().pool()),
        trace_(run.run->options().trace),
        wanted_part_(has_one_branch() ? std::make_shared<demand>(run.wanted) : nullptr),
        branches_(std::make_shared<link<branch>>(wanted_part_ ? run.taken_by(wanted_part_) : run,
                                                 options_of_branches())),
        inside_(run.until(branches_->stop_token())) {
    branches_->count_for(counters);
    counters.depth.begin(this);
    stage_workers workers{.workers = concurrency, .slots = slots_for(concurrency)};
    if (auto* pool = stage_->options().pool) {
      workers.own_threads = pool->size();
      home_ = pool;
    } else if (auto* share = run.run->automatic_share(); share && shares_cpus) {
      workers.shared_threads = concurrency;
      home_ = share;
    }
    if (has_one_branch()) {
      shared_ = open_branch();
      oldest_ = std::make_shared<demand>(wanted_part_);
    }
    run.run->stages().record_workers(counters, workers);
    run.run->stages().watch(*this);
  }

  ~concurrent_flat_map() override {
    run_.run->tuned().close(*this);
    run_.run->stages().unwatch(*this);
    counters_.depth.set(this, 0);
  }

  // Has the run adjust the number of items in flight, up to `concurrency`, while the stage works.
  // Must be called at most once.
  void tune(const stage_key& key, const tuner& begin) {
    run_.run->tuned().open(*this, key, counters_, begin);
    begin_tuning(run_.run);
  }

  // The context to open the upstream with.
  open_context before(const open_context& run) const { return branches_->before(run); }

  void start(async_generator<In> upstream) {
    branches_->start(drain(std::move(upstream), branch_sink(this->shared_from_this())));
  }

  // Yields the parts. Destroying the generator ends the stage.
  static async_generator<Out> deliver(owner<concurrent_flat_map> self) {
    auto branches = deliver_from<branch>(owner<link_base>(self->branches_));
    while (auto* next = co_await branches.next().apart()) {
      if (self->has_one_branch()) self->begin_shared();
      auto parts = deliver_from<Out>(owner<link_base>(std::move(*next)));
      while (true) {
        self->wanted_ = true;
        auto* part = co_await parts.next().apart();
        self->wanted_ = false;
        if (!part) break;
        count_out(self->counters_, *part);
        with_lineage<Out> yielded{parts.origin(), *part};
        co_yield yielded;
      }
      if (!self->has_one_branch()) self->end_branch();
      co_await consume(parts.unyielded());
    }
  }

  void close() noexcept { branches_->close(); }

 private:
  using branch = std::shared_ptr<link_base>;

  // The items that the stage may hold. In input order, the item whose parts are delivered needs no
  // permit any more.
  std::size_t slots_for(std::size_t concurrency) const noexcept {
    return has_one_branch() ? concurrency : concurrency + 1;
  }

  std::size_t slots_at(const tuner::setting& now) const noexcept override {
    return slots_for(now.concurrency);
  }
  void set(const tuner::setting& now) override {
    room_.set_most(now.concurrency);
    if (has_one_branch())
      bound_shared();
    else
      branches_->bound(0, slots_at(now));
  }

  std::size_t parts_queued() const noexcept {
    return std::max<std::size_t>(stage_->options().buffer, 1);
  }

  // Items in flight beyond the setting, which end, keep their slots in the shared branch.
  void bound_shared() {
    std::lock_guard lock(mutex_);
    const auto feeders = std::max(room_.most(), in_flight_.size());
    shared_->bound(feeders, feeders + parts_queued());
  }

  void release() {
    room_.release();
    if (has_one_branch() && room_.most() < concurrency_) bound_shared();
  }

  // Up to `queued` items that are not in the trace.
  static link_options queue_options(std::size_t queued, std::size_t inputs) {
    auto options = link_options::gathering(queued, inputs);
    options.ends_after = 1;
    options.is_traced = false;
    return options;
  }

  // A branch stays in its slot while it is read. Its items and parts have marks themselves.
  link_options options_of_branches() const {
    auto options = queue_options(concurrency_, 1);
    options.marks_items = false;
    options.ring.measures_feeders = true;
    options.ring.measures_depth = false;
    return options;
  }

  bool has_one_branch() const noexcept { return stage_->options().order == item_order::completion; }

  // What an item needs while it is split: a track in a trace, counters, and in completion order a
  // claim to the memory budget and the context with it.
  struct split_worker {
    explicit split_worker(const concurrent_flat_map& of)
        : track(of.trace_, of.counters_),
          busy(of.counters_.busy),
          cpu(of.counters_.cpu, true),
          claim(of.oldest_, demand::none) {
      if (!of.shared_) return;
      execution = of.shared_->input_context();
      execution.claim = &claim;
    }

    stage_track track;
    call_time::caller busy;
    cpu_sampler cpu;
    memory_claim claim;
    context execution;
  };
  using worker = typename std::list<split_worker>::iterator;

  // The record of an item. `by`: the worker, until the item has been split. is_read: in input
  // order, whether its branch has been read. A stop closes branches, so it may be read before it is
  // done.
  struct split_item {
    void take(const In& item, const lineage& positions, std::size_t as, worker with) {
      name.keep(item);
      origin = positions;
      number = as;
      doing = item_overview::doing::waits_for_worker;
      is_read = false;
      by = with;
      by->claim.set_item(as);
    }
    void begin(clock::time_point now) noexcept {
      since = now;
      doing = item_overview::doing::works;
    }
    item_overview overview() const {
      return {.name = name.text(), .origin = origin, .what = doing, .since = since};
    }

    kept_name<In> name;
    lineage origin;
    std::size_t number = 0;
    bool is_read = false;
    std::atomic<item_overview::doing> doing = item_overview::doing::works;
    std::atomic<clock::time_point> since = clock::time_point();
    worker by;
  };
  using record = typename std::list<split_item>::iterator;

  // Keeps an item in in_flight_.
  class entry {
   public:
    entry(concurrent_flat_map& stage, const In& item, const lineage& origin)
        : stage_(&stage), record_(stage.enter(item, origin)) {}
    entry(entry&& other) noexcept
        : stage_(std::exchange(other.stage_, nullptr)), record_(other.record_) {}
    entry& operator=(entry&&) = delete;
    ~entry() {
      if (stage_) stage_->leave(record_);
    }
    split_item& operator*() const noexcept { return *record_; }
    split_item* operator->() const noexcept { return &*record_; }

   private:
    concurrent_flat_map* stage_;
    record record_;
  };

  // The right to split an item, until the object is destroyed. Keeps the stage alive: GCC 12
  // destroys the parameters of a coroutine in the order of their declaration.
  class permit {
   public:
    explicit permit(std::shared_ptr<concurrent_flat_map> stage) noexcept
        : stage_(std::move(stage)) {}
    permit(permit&&) noexcept = default;
    permit& operator=(permit&&) = delete;
    ~permit() {
      entry_.reset();
      if (stage_) stage_->release();
    }
    concurrent_flat_map& stage() const noexcept { return *stage_; }

    // From now on the item is in flight, and waits for a thread that splits it.
    void begin(const In& item, const lineage& origin) {
      mark_ = in_flight_mark(stage_->run_.path.get());
      entry_.emplace(*stage_, item, origin);
    }
    // After begin(). The context in which an item of a shared branch is split, kept by the stage.
    std::shared_ptr<const context> execution() const noexcept {
      return {stage_, &(*entry_)->by->execution};
    }

    // Call once, after begin(): the item is in flight until the entry is destroyed.
    entry take_entry() noexcept { return *std::move(entry_); }

   private:
    std::shared_ptr<concurrent_flat_map> stage_;
    in_flight_mark mark_;  // of the item
    std::optional<entry> entry_;
  };

  // Starts to split each item, and puts the branches into their link: a sink for drain().
  class branch_sink {
   public:
    explicit branch_sink(std::shared_ptr<concurrent_flat_map> stage)
        : stage_(std::move(stage)), branches_(*stage_->branches_) {}

    task<bool> capacity() {
      stage_->feeder_ = stage_overview::feeding::waits_for_slot;
      if (!stage_->shared_ || !std::exchange(shared_is_put_, true)) {
        const bool is_open = co_await branches_.capacity();
        if (!is_open) co_return false;
        if (stage_->shared_) put_shared();
      }
      if (!stage_->room_.try_acquire()) {
        stopwatch blocked(stage_->counters_.output_wait);
        co_await stage_->room_.acquire();
      }
      may_split_.emplace(stage_);
      stage_->feeder_ = stage_overview::feeding::waits_for_input;
      co_return true;
    }

    class input_wait {
     public:
      explicit input_wait(const branch_sink& of) noexcept
          : waiting_(of.stage_->counters_.input_wait) {}

     private:
      stopwatch<waiting_time> waiting_;
    };

    std::optional<task<>> put(void* item, const lineage& origin) {
      increment(stage_->counters_.in);
      const bool is_shared = stage_->shared_ != nullptr;
      auto to = is_shared ? stage_->shared_ : stage_->open_branch();
      may_split_->begin(*static_cast<In*>(item), origin);
      if (is_shared) to->expect_input();  // start_parts() ends it, also if it throws
      start_parts(*to, std::move(*may_split_), std::move(*static_cast<In*>(item)), origin);
      return is_shared ? std::nullopt : branches_.put(&to, {});
    }

    void put_rest(const lineage&) noexcept {}

    void end(std::exception_ptr failure) noexcept {
      may_split_.reset();
      stage_->feeder_ = stage_overview::feeding::over;
      if (stage_->shared_) stage_->shared_->end_input(nullptr);
      branches_.end(std::move(failure));
    }

   private:
    void put_shared() {
      auto to = stage_->shared_;
      branches_.put(&to, {});
      branches_.pass_on();
    }

    std::shared_ptr<concurrent_flat_map> stage_;
    link_base::sink branches_;
    bool shared_is_put_ = false;
    std::optional<permit> may_split_;  // for the next item
  };

  // Starts the drain of the parts of an item. If it cannot be started, the branch does not wait for
  // it.
  static void start_parts(link_base& to, permit may_split, In&& item, const lineage& origin) {
    try {
      if (!may_split.stage().shared_)
        return to.start(parts(std::move(may_split), std::move(item), origin));
      auto execution = may_split.execution();
      to.start_in(std::move(execution), parts(std::move(may_split), std::move(item), origin));
    } catch (...) {
      to.end_input(nullptr);
      throw;
    }
  }

  branch open_branch() const {
    auto inputs = has_one_branch() ? concurrency_ : 1;
    auto options = queue_options(parts_queued(), inputs);
    const auto bytes = stage_->options().buffer_bytes;
    options.limit(bytes, measure_for<Out>(bytes, counters_.name(), "buffer_bytes"));
    options.delivers_rest = true;
    options.stops_inputs = false;  // the link of branches does
    auto opened = wanted_part_ ? std::make_shared<link<Out>>(inside_, options, wanted_part_)
                               : std::make_shared<link<Out>>(inside_, options);
    opened->count_for(counters_);
    opened->compute_on(*home_);
    return opened;
  }

  // Yields the parts of one item.
  static async_generator<Out> parts(permit may_split, In item, lineage origin) {
    auto* self = &may_split.stage();
    co_await continue_on(*self->home_);
    auto place = may_split.take_entry();
    auto made =
        self->stage_->parts(std::move(item), place->name, origin, self->inside_, self->counters_);
    bool some = false;
    while (true) {
      const auto start_time = self->begin_part(*place);
      auto* part = co_await made.next().apart();
      self->end_part(*place, start_time, made.awaited());
      if (!part) break;
      some = true;
      with_lineage<Out> yielded{made.origin(), *part};
      co_yield yielded;
    }
    if (!some) co_await consume(origin);
  }

  record enter(const In& item, const lineage& origin) {
    std::lock_guard lock(mutex_);
    if (idle_.empty()) idle_.emplace_back();
    if (idle_workers_.empty()) idle_workers_.emplace_back(*this);
    auto taken = idle_.begin();
    taken->take(item, origin, numbers_++, idle_workers_.begin());
    in_flight_.splice(in_flight_.end(), idle_, taken);
    workers_.splice(workers_.end(), idle_workers_, idle_workers_.begin());
    record_levels();
    record_wanted();
    return taken;
  }
  void leave(record taken) {
    {
      std::lock_guard lock(mutex_);
      idle_workers_.splice(idle_workers_.end(), workers_, taken->by);
      taken->doing = item_overview::doing::done;
      if (has_one_branch() || taken->is_read) idle_.splice(idle_.end(), in_flight_, taken);
      record_levels();
      record_wanted();
    }
    if (has_one_branch()) run_.run->runtime().memory().reconsider();
  }

  // In input order: the branch of the first unread item has been read.
  void end_branch() {
    std::lock_guard lock(mutex_);
    auto read = std::ranges::find(in_flight_, false, &split_item::is_read);
    read->is_read = true;
    if (read->doing == item_overview::doing::done) idle_.splice(idle_.end(), in_flight_, read);
    counters_.depth.set(this, in_flight_.size());
  }

  // A level that cannot be added for lack of memory is missing in the trace.
  void record_levels() noexcept {
    counters_.depth.set(this, in_flight_.size());
    if (!trace_) return;
    try {
      trace_->add_levels(counters_.name(), {{"working", workers_.size()}});
    } catch (const std::exception&) {}
  }

  // In completion order, when deliver() has taken the shared branch: it waits in that one from now
  // on.
  void begin_shared() {
    {
      std::lock_guard lock(mutex_);
      record_wanted();
    }
    run_.run->runtime().memory().reconsider();
  }
  void record_wanted() noexcept {
    if (!has_one_branch()) return;
    const bool is_idle = in_flight_.empty();
    branches_->wanted()->await(is_idle ? demand::next : demand::none);
    oldest_->await(is_idle ? demand::none : in_flight_.front().number);
  }

  clock::time_point begin_part(split_item& item) {
    auto start_time = clock::now();
    if (trace_) run_.run->arrows().step(item.origin, item.by->track.number(), start_time);
    item.begin(start_time);
    item.by->busy.begin(start_time);
    item.by->cpu.begin();
    return start_time;
  }

  void end_part(split_item& item, clock::time_point start_time, bool awaited) {
    item.doing = item_overview::doing::yields_part;
    auto now = clock::now();
    item.by->busy.end(now);
    record_call(item, now - start_time, awaited);
    if (!trace_) return;
    auto key = item.name.text();
    auto name = key.empty() ? counters_.name() : key;
    trace_->add_span(item.by->track.number(), name, start_time, now, item.origin);
  }

  // If the generator awaited something, it may have computed on another thread: no CPU time is
  // taken.
  void record_call(split_item& item, clock::duration taken, bool awaited) {
    counters_.latency.add(taken);
    if (counters_.slowest.take(taken))
      counters_.slowest.add({item.name.text(), item.origin, taken});
    if (awaited)
      counters_.awaited.fetch_add(taken.count(), std::memory_order_relaxed);
    else
      item.by->cpu.end(taken);
  }

  std::string overview(clock::time_point at) const override {
    std::lock_guard lock(mutex_);
    const auto concurrency = room_.most();
    const auto slots = slots_for(concurrency);
    const auto idle = concurrency - std::min(workers_.size(), concurrency);
    std::vector<item_overview> items;
    for (auto& each : in_flight_) items.push_back(each.overview());
    return to_string(counters_.name(),
                     {.slots = slots,
                      .free = std::min(slots - std::min(in_flight_.size(), slots), idle),
                      .idle_workers = idle,
                      .feeder = feeder_,
                      .wanted = wanted_,
                      .items = std::move(items)},
                     at);
  }

  const open_context run_;
  stage_counters& counters_;
  const counted_ptr<const Stage> stage_;
  const std::size_t concurrency_;
  permits room_;                      // for items in flight
  executor* home_;                    // where items are split
  std::atomic<bool> wanted_ = false;  // the next stage waits for a part
  std::atomic<stage_overview::feeding> feeder_ = stage_overview::feeding::waits_for_input;
  trace* const trace_;
  mutable std::mutex mutex_;
  std::list<split_item> idle_;  // the records of earlier items
  // Items that are split or wait for a thread, in the order of the input; in input order also those
  // whose branch has not been read.
  std::list<split_item> in_flight_;
  std::list<split_worker> idle_workers_;
  std::list<split_worker> workers_;            // of the items that are split or wait for a thread
  std::size_t numbers_ = 0;                    // of items so far
  const std::shared_ptr<demand> wanted_part_;  // of the shared branch, for any part
  const std::shared_ptr<link<branch>> branches_;
  const open_context inside_;       // of the parts: what a stop interrupts is no failure
  branch shared_;                   // in completion order
  std::shared_ptr<demand> oldest_;  // in completion order: for the item that was started first
};

}  // namespace lade::detail
