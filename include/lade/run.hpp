// One pass over a pipeline.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/autotune.hpp>
#include <lade/detail/observability/observer.hpp>
#include <lade/detail/observability/profiler.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/stages/link.hpp>
#include <lade/detail/stages/slot_ring.hpp>
#include <lade/error.hpp>
#include <lade/pipeline.hpp>
#include <lade/run_options.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/sleep.hpp>
#include <lade/stats.hpp>
#include <lade/sync_wait.hpp>
#include <lade/this_context.hpp>
#include <lade/trace.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

namespace lade {

template <class T>
class epochs;

namespace detail {

// The number of items in LADE_PROFILE, which asks for a profile of the first run of the program. 0
// if it is not set, for all further calls, and on all ranks but the first. Writes a message to
// standard error if the value is no number of items.
std::uint64_t take_profile_wanted();

// Profiles the stages of a run and writes the result to standard error, or the reason why there is
// none.
task<> tell_profile(run_state& of, node_ptr last, std::uint64_t items);

// The exclusive right to take an item of a run. The constructor throws error(wrong_thread) if
// another thread or coroutine has it.
class alone {
 public:
  explicit alone(std::atomic<bool>& taken) : taken_(taken) {
    if (taken_.exchange(true, std::memory_order_acquire)) refuse();
  }
  alone(const alone&) = delete;
  ~alone() { taken_.store(false, std::memory_order_release); }

 private:
  [[noreturn]] static void refuse();

  std::atomic<bool>& taken_;
};

// Starts a run for a profile. LADE_PROFILE does not apply to such a run.
run<std::uint64_t> start_trial(runtime& where, const pipeline<std::uint64_t>& what,
                               profiler& profiling);

}  // namespace detail

// A live pass over a pipeline, created by runtime::run or pipeline::start. The stages start when
// the run is constructed and work ahead until their buffers are full.
//
// First, the run opens its stages on the CPU pool: it creates their coroutines, and calls functions
// that a stage needs once per run, such as that of per_run. If a repeat is not free (see cut.hpp),
// the stages before it are opened again for each round. Stages before a cache that has all items
// are not opened.
//
// The destructor stops the run: it cancels all work in flight and blocks until that has ended.
// Afterwards none of the pipeline's functions is running.
//
// The run owns a copy of the pipeline. The runtime must outlive the run.
//
// Only one thread or coroutine at a time may take items. A second one at the same time gets
// error(wrong_thread).
//
// A run can be neither copied nor moved, so std::make_unique(runtime.run(samples)) does not
// compile. A function returns a run by value: `return where.run(samples);`. A class keeps a run as
// a member: initialised from such a call, or constructed in a std::optional:
//
//   class trainer {
//    public:
//     void begin_epoch(lade::runtime& where, std::uint64_t epoch) {
//       run_.emplace(where, samples_, lade::run_options{.epoch = epoch});  // stops the last one
//     }
//     std::optional<lade::sample> next() { return run_->wait_next(); }
//
//    private:
//     lade::pipeline<lade::sample> samples_;
//     std::optional<lade::run<lade::sample>> run_;
//   };
template <class T>
class [[nodiscard("a run that nobody holds ends at once: take its items")]] run {
 public:
  class iterator;

  run(runtime& where, const pipeline<T>& what, const run_options& options)
      : run(where, what, options, nullptr) {}
  run(run&&) = delete;  // a run cannot be moved: construct it in a std::optional, by emplace
  ~run() {
    consumer_.ended();
    state_->failures().stop_reporting();
    state_->end();
  }

  // Awaits the next item. Returns nothing at the end of the run. If the run has failed, delivers
  // the items before the failure, then rethrows the failure (a stage_error if a stage failed), then
  // returns nothing. Throws error(stopped) if the run or the awaiting coroutine is asked to stop.
  // If the move of an item throws, next() throws that exception, the item does not count as
  // delivered, and the run continues with the item after it.
  task<std::optional<T>> next() {
    detail::alone taking(taken_);
    if (ended_) co_return std::nullopt;
    consumer_.asked();
    std::optional<T> item;
    if (!std::exchange(is_ready_, false)) slot_ = co_await items_->take(std::exchange(slot_, none));
    if (slot_ != none) {
      lineage origin;
      {
        taken_item taken(*items_, slot_);
        item.emplace(std::move(items_->item(slot_)));
        origin = std::move(items_->origin(slot_));
      }
      state_->count_delivered();
      state_->progress().note(origin);
      consumer_.given(origin, state_->arrows(), *items_);
    } else {
      ended_ = true;
      state_->end();
      std::exception_ptr failure;
      try {
        co_await children_.join();
      } catch (...) {
        failure = state_->failures().outcome(std::current_exception());
      }
      children_ended(failure);
    }
    co_return item;
  }

  // Like next(), but throws error(timed_out) if after `limit` no item is ready and the run has not
  // ended. A run has ended when all functions that it called have returned. After the exception,
  // the run continues and loses no item: the caller may await the next one again. Requires a
  // runtime.
  task<std::optional<T>> next(std::chrono::nanoseconds limit) {
    co_await with_timeout(limit, look_ahead(), "wait for an item of a run");
    co_return co_await next();
  }

  // Like next(), but block an ordinary thread. The limit applies even if functions occupy all
  // threads of the CPU pool. Throw error(wrong_thread) on a thread of a runtime. If there is no
  // memory, they throw error(ENOMEM) instead of std::bad_alloc, so that the text names the
  // operation.
  std::optional<T> wait_next() try { return sync_wait(next()); } catch (const std::bad_alloc&) {
    detail::run_state::lacks_memory_to_take();
  }
  std::optional<T> wait_next(std::chrono::nanoseconds limit) try {
    auto& where = state_->runtime();
    return detail::sync_wait_on(where.reactor(0), where, next(limit));
  } catch (const std::bad_alloc&) {
    detail::run_state::lacks_memory_to_take();
  }

  // For `for (auto& item : run)` in an ordinary thread. An item is valid until the iterator is
  // incremented.
  iterator begin() { return iterator(*this); }
  std::default_sentinel_t end() const noexcept { return {}; }

  // Asks the run to stop and returns at once. Items that are ready can still be taken; then next()
  // throws error(stopped), or returns nothing if the run had ended before. Any thread.
  void stop() noexcept {
    state_->failures().stop_reporting();
    children_.stop();
  }

  // The state of the run (a checkpoint), from which another run resumes; see state.hpp. It records
  // the items that the consumer has taken. Items that are ready but not taken are delivered by
  // the run that resumes. Any thread, at any time.
  //
  // - Blocking: until the run has opened its stages.
  // - Errors: error(wrong_thread) if it would have to block on a thread of a runtime.
  //   error(invalid_argument) with the reason if a stage makes an exact state impossible.
  lade::state state() const { return state_->state(); }

  // The counters of all stages up to now. Any thread, at any time.
  run_statistics statistics() const { return state_->statistics(); }

  // settings() returns the current settings of the stages with automatic options, from the source
  // on; the output queue is called "run". freeze() ends the tuning: those stages keep the best
  // settings found so far. Any thread, at any time.
  std::vector<stage_setting> settings() const { return state_->tuned().settings(); }
  void freeze() { state_->tuned().freeze(); }

  // The number of the epoch.
  std::uint64_t epoch() const noexcept { return state_->epoch(); }

  // The last thousand items that failed. Any thread, at any time.
  std::vector<failure_record> failures() const { return state_->failures().records(); }

 private:
  friend class epochs<T>;
  friend run<std::uint64_t> detail::start_trial(runtime& where, const pipeline<std::uint64_t>& what,
                                                detail::profiler& profiling);

  // How the coroutine fill() and the consumer work together:
  // - fill(), the first of `children_`, opens the stages on the CPU pool. It moves the items of
  //   the last stage into `items_` and suspends while `items_` is full. While memory is short, it
  //   takes the next item only when the consumer waits for it: that item may exceed the budget.
  // - The consumer takes items. It owns the slot of the latest item, which it frees when it takes
  //   the next one. Only the one that holds `taken_` uses `slot_`, `is_ready_`, `ended_`
  //   and `consumer_`.
  // - However fill() ends, `closer` ends `items_`. Items in it can still be taken.
  // - A consumer that gets no item joins `children_`, and then knows whether a child has failed.
  // - The destructor ends the members in reverse order: the watchdog's entry, then `children_`,
  //   which stops all children and waits for them, then all that children use.
  //
  // `before`: the run of the previous epoch, or null. This run starts when all input of `before`
  // has been consumed.
  run(runtime& where, const pipeline<T>& what, const run_options& options,
      std::shared_ptr<detail::run_state> before, detail::profiler* profiling = nullptr)
      : use_(where),
        pipeline_(what),
        state_(std::make_shared<detail::run_state>(where, options, children_, before.get(),
                                                   profiling)),
        items_(
            std::make_shared<detail::link<T>>(state_, output_options(options), state_->wanted())),
        consumer_(options.trace),
        children_(state_->make_context()) {
    where.require_same_process();
    items_->count_for(state_->output);
    watch_.emplace(state_);
    children_.start(fill(pipeline_, state_, *items_, std::move(before)));
  }

  static constexpr auto none = detail::slot_ring::none;

  // fill() may hold one item more than are ready, and the consumer owns one slot.
  static detail::link_options output_options(const run_options& options) {
    const auto ready = options.ready == automatic ? options.tune.most : options.ready;
    return {.ring = {.slots = ready + 2,
                     .refills = detail::refill::at_half,
                     .consumer_owns_slot = true,
                     .waits_for_memory = true,
                     .bytes = options.ready_bytes,
                     .measures_feeders = true,
                     .measures_depth = true},
            .is_traced = false,
            .measure = detail::measure_for<T>(options.ready_bytes, "run", "ready_bytes"),
            .is_output = true};
  }

  // Drops the item in a slot of the output queue, also if its move throws.
  class taken_item {
   public:
    taken_item(detail::link<T>& items, std::size_t slot) noexcept : items_(items), slot_(slot) {}
    taken_item(const taken_item&) = delete;
    ~taken_item() { items_.drop_result(slot_); }

   private:
    detail::link<T>& items_;
    std::size_t slot_;
  };

  // Ends the output queue when fill() ends or is asked to stop.
  class closer {
   public:
    closer(detail::link<T>& items, detail::run_state& state, const std::stop_token& stop)
        : items_(items), state_(state), on_stop_(stop, end_items{items}) {}
    closer(const closer&) = delete;
    ~closer() {
      state_.progress().settle();
      state_.input_over().set();
      items_.end_input(nullptr);
    }

   private:
    struct end_items {
      detail::link<T>& items;
      void operator()() const noexcept { items.end_input(nullptr); }
    };

    detail::link<T>& items_;
    detail::run_state& state_;
    std::stop_callback<end_items> on_stop_;
  };

  class children_watch {
   public:
    explicit children_watch(detail::run_state& state) noexcept : state_(state) {}
    children_watch(const children_watch&) = delete;
    ~children_watch() { state_.children().ended(); }

   private:
    detail::run_state& state_;
  };

  // Waits until next() can return without suspending: until an item is in `slot_`, or the run has
  // ended.
  task<> look_ahead() {
    detail::alone taking(taken_);
    if (is_ready_ || ended_) co_return;
    slot_ = co_await items_->take(std::exchange(slot_, none));
    is_ready_ = slot_ != none;
    if (is_ready_) co_return;
    state_->end();
    co_await children_.ended();
  }

  // Rethrows the failure of the run, if any. A plain function, because a coroutine would allocate.
  void children_ended(const std::exception_ptr& failure) {
    state_->children().ended();
    state_->arrows().finish();
    if (failure) std::rethrow_exception(failure);
  }

  // Opens the stages and moves the items of the last one into `items`.
  static task<> fill(const pipeline<T>& what, std::shared_ptr<detail::run_state> state,
                     detail::link<T>& items, std::shared_ptr<detail::run_state> before) {
    auto& execution = co_await detail::this_context_reference();
    closer at_the_end(items, *state, execution.stop);
    if (before) {
      co_await before->input_over();
      state->tuned().begin_epoch();
      before.reset();
    }
    const bool is_trial = state->profiling();
    if (auto wanted = is_trial ? 0 : detail::take_profile_wanted())
      co_await detail::tell_profile(*state, what.last(), wanted);
    state->begin();
    detail::begin_reports(state);
    if (state->options().ready == automatic)
      items.tune(state->output_key(), detail::queue_tuner(state->options().tune.most));
    state->make_plan(*what.last());
    detail::open_input until_all_are(state);
    auto source = what.open(detail::open_context(state, execution.stop));
    until_all_are.end();
    if (!is_trial) detail::node_base::warn_of_same_epoch(*state);
    state->progress().begin(state->stages().names());
    state->progress().settle();
    if (state->progress().resumed()) source = without_taken(std::move(source), state);
    co_await items.fill_from(std::move(source));
    if (execution.stop.stop_requested()) throw error(errc::stopped, "run");
    state->progress().end();
  }

  // Drops the items that the run had delivered before it was resumed.
  static async_generator<T> without_taken(async_generator<T> items,
                                          std::shared_ptr<detail::run_state> state) {
    while (auto* item = co_await items.next())
      if (!state->progress().is_taken(items.origin())) co_yield *item;
  }

  detail::runtime_use use_;
  const pipeline<T> pipeline_;  // owns the closures whose coroutines are children
  std::shared_ptr<detail::run_state> state_;
  std::shared_ptr<detail::link<T>> items_;
  std::size_t slot_ =
      items_->take_first_slot();  // of the latest item; none after a stop or the end
  bool is_ready_ = false;         // whether look_ahead() has taken the item in it
  detail::consumer_trace consumer_;
  bool ended_ = false;
  std::atomic<bool> taken_ = false;  // whether a consumer is taking an item
  children_watch after_children_{*state_};
  scope children_;  // declared after all members that its children use
  std::optional<detail::run_watch> watch_;
};

// A single-pass input iterator.
template <class T>
class run<T>::iterator {
 public:
  using value_type = T;
  using difference_type = std::ptrdiff_t;

  explicit iterator(run& items) : run_(&items), item_(items.wait_next()) {}

  T& operator*() const noexcept { return *item_; }
  T* operator->() const noexcept { return &*item_; }
  iterator& operator++() {
    item_.reset();  // frees its memory before the wait for the next item
    item_ = run_->wait_next();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const iterator& at, std::default_sentinel_t) noexcept { return !at.item_; }

 private:
  run* run_;
  mutable std::optional<T> item_;
};

template <class T>
run<T> pipeline<T>::start(runtime& where, const run_options& options) const {
  return run<T>(where, *this, options);
}

template <class T>
run<T> runtime::run(const pipeline<T>& what, const run_options& options) {
  return lade::run<T>(*this, what, options);
}

}  // namespace lade
