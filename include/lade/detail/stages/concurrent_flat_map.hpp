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
// the items. In completion order all items share one branch.
// - Ownership: the generator of deliver() owns the stage; each coroutine keeps it alive.
// - Blocking: the branch_sink suspends in room_ while `concurrency` items are in flight, and in the
//   link of branches while that many are unread. parts() suspends while its branch is full
//   (options().buffer parts).
// - Lock: mutex_ guards idle_, in_flight_ and held_, for reports.
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
        branches_(std::make_shared<link<branch>>(run, options_of_branches())),
        inside_(run.until(branches_->stop_token())) {
    branches_->count_for(counters);
    counters.depth.begin(this);
    const auto slots = has_one_branch() ? concurrency : options_of_branches().ring.slots;
    stage_workers workers{.workers = concurrency, .slots = slots};
    if (auto* pool = stage_->options().pool) {
      workers.own_threads = pool->size();
      home_ = pool;
    } else if (auto* share = run.run->automatic_share(); share && shares_cpus) {
      workers.shared_threads = concurrency;
      home_ = share;
    }
    run.run->stages().record_workers(counters, workers);
    run.run->stages().watch(*this);
  }

  ~concurrent_flat_map() override {
    run_.run->tuned().close(*this);
    run_.run->stages().unwatch(*this);
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
      if (self->has_one_branch()) self->branches_->await_next();
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

  // Each item in flight has a branch, and so has the item whose parts are delivered.
  void set(const tuner::setting& now) override {
    room_.set_most(now.concurrency);
    branches_->bound(std::size_t{now.concurrency} + 1);
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

  // The record of one item that is being split: its track in a trace, its counters, its name.
  class split_item {
   public:
    split_item(stage_counters& counters, lade::trace* to)
        : track(to, counters), busy(counters.busy), cpu(counters.cpu, true) {}

    void take(const In& item, const lineage& positions) {
      name.keep(item);
      origin = positions;
      doing = item_overview::doing::waits_for_worker;
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
      if (stage_) stage_->room_.release();
    }
    concurrent_flat_map& stage() const noexcept { return *stage_; }

    // From now on the item is in flight, and waits for a thread that splits it.
    void begin(const In& item, const lineage& origin) {
      mark_ = in_flight_mark(stage_->run_.path.get());
      entry_.emplace(*stage_, item, origin);
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
        : stage_(std::move(stage)),
          branches_(*stage_->branches_),
          branch_of_all_(stage_->has_one_branch() ? stage_->open_branch() : nullptr) {}

    task<bool> capacity() {
      if (!branch_of_all_ || !std::exchange(branch_of_all_is_put_, true)) {
        const bool is_open = co_await branches_.capacity();
        if (!is_open) co_return false;
        if (branch_of_all_) put_branch_of_all();
      }
      if (!stage_->room_.try_acquire()) {
        stopwatch blocked(stage_->counters_.output_wait);
        co_await stage_->room_.acquire();
      }
      may_split_.emplace(stage_);
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
      auto to = branch_of_all_ ? branch_of_all_ : stage_->open_branch();
      if (branch_of_all_) to->expect_input();
      may_split_->begin(*static_cast<In*>(item), origin);
      start_parts(*to, std::move(*may_split_), std::move(*static_cast<In*>(item)), origin);
      return branch_of_all_ ? std::nullopt : branches_.put(&to, {});
    }

    void put_rest(const lineage&) noexcept {}

    void end(std::exception_ptr failure) noexcept {
      may_split_.reset();
      if (branch_of_all_) branch_of_all_->end_input(nullptr);
      branches_.end(std::move(failure));
    }

   private:
    void put_branch_of_all() {
      auto to = branch_of_all_;
      branches_.put(&to, {});
      branches_.pass_on();
    }

    std::shared_ptr<concurrent_flat_map> stage_;
    link_base::sink branches_;
    branch branch_of_all_;  // null if each item has its own
    bool branch_of_all_is_put_ = false;
    std::optional<permit> may_split_;  // for the next item
  };

  // Starts the drain of the parts of an item. If it cannot be started, the branch does not wait for
  // it.
  static void start_parts(link_base& to, permit may_split, In&& item, const lineage& origin) {
    try {
      to.start(parts(std::move(may_split), std::move(item), origin));
    } catch (...) {
      to.end_input(nullptr);
      throw;
    }
  }

  branch open_branch() const {
    auto inputs = has_one_branch() ? concurrency_ : 1;
    auto queued = std::max<std::size_t>(stage_->options().buffer, 1);
    auto options = queue_options(queued, inputs);
    const auto bytes = stage_->options().buffer_bytes;
    options.limit(bytes, measure_for<Out>(bytes, counters_.name(), "buffer_bytes"));
    options.delivers_rest = true;
    options.stops_inputs = false;  // the link of branches does
    auto opened = std::make_shared<link<Out>>(inside_, options);
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
    if (idle_.empty()) idle_.emplace_back(counters_, trace_);
    auto taken = idle_.begin();
    taken->take(item, origin);
    in_flight_.splice(in_flight_.end(), idle_, taken);
    ++held_;
    record_level();
    return taken;
  }
  void leave(record taken) {
    std::lock_guard lock(mutex_);
    idle_.splice(idle_.end(), in_flight_, taken);
    if (has_one_branch()) --held_;
    record_level();
  }
  void end_branch() {
    std::lock_guard lock(mutex_);
    counters_.depth.set(this, --held_);
  }
  void record_level() {
    counters_.depth.set(this, held_);
    if (trace_) trace_->add_levels(counters_.name(), {{"working", in_flight_.size()}});
  }

  clock::time_point begin_part(split_item& item) {
    auto start_time = clock::now();
    if (trace_) run_.run->arrows().step(item.origin, item.track.number(), start_time);
    item.begin(start_time);
    item.busy.begin(start_time);
    item.cpu.begin();
    return start_time;
  }

  void end_part(split_item& item, clock::time_point start_time, bool awaited) {
    item.doing = item_overview::doing::yields_part;
    auto now = clock::now();
    item.busy.end(now);
    record_call(item, now - start_time, awaited);
    if (!trace_) return;
    auto key = item.name.text();
    auto name = key.empty() ? counters_.name() : key;
    trace_->add_span(item.track.number(), name, start_time, now, item.origin);
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
      item.cpu.end(taken);
  }

  std::string overview(clock::time_point at) const override {
    using enum stage_overview::feeding;
    std::lock_guard lock(mutex_);
    const auto most = std::max(room_.most(), in_flight_.size());
    const auto free = most - in_flight_.size();
    std::vector<item_overview> items;
    for (auto& each : in_flight_) items.push_back(each.overview());
    return to_string(counters_.name(),
                     {.slots = most,
                      .free = free,
                      .idle_workers = free,
                      .feeder = free > 0 ? waits_for_input : waits_for_slot,
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
  trace* const trace_;
  mutable std::mutex mutex_;
  std::list<split_item> idle_;       // the records of earlier items
  std::list<split_item> in_flight_;  // that are split, or wait for a thread
  std::size_t held_ = 0;             // items in flight, and those of unread branches
  const std::shared_ptr<link<branch>> branches_;
  const open_context inside_;  // of the parts: what a stop interrupts is no failure
};

}  // namespace lade::detail
