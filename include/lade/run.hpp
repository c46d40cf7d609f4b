// One pass over a pipeline.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/autotune.hpp>
#include <lade/channel.hpp>
#include <lade/detail/observability/observer.hpp>
#include <lade/detail/observability/profiler.hpp>
#include <lade/detail/pipeline/run_state.hpp>
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
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace lade {

template <class T>
class epochs;

namespace detail {

// For how many items the first run of the program is to be profiled, as LADE_PROFILE says; 0 if it
// is not, for all further runs, and on all ranks but the first. Standard error tells of a value
// that is no number of items.
std::uint64_t take_profile_wanted();

// Writes to standard error how fast the stages of a run are, or why that cannot be told.
task<> tell_profile(run_state& of, node_ptr last, std::uint64_t items);

// The consumer's wait for an item of a run, if none is ready.
class wanted_item {
 public:
  wanted_item(run_state& run, std::size_t ready) : run_(run) {
    if (ready > 0) return;
    run_.wanted()->await(demand::next);
    run_.runtime().memory().reconsider();
  }
  wanted_item(const wanted_item&) = delete;
  ~wanted_item() { run_.wanted()->await(demand::none); }

 private:
  run_state& run_;
};

// Whoever takes an item of a run. Throws error(wrong_thread) if somebody else does.
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

// A run of a profile, which is not profiled itself.
run<std::uint64_t> start_trial(runtime& where, const pipeline<std::uint64_t>& what,
                               profiler& profiling);

}  // namespace detail

// A live pass over a pipeline, made by runtime::run or pipeline::start. Its stages work from the
// moment it is made, as far ahead as their buffers go. The destructor stops it: it cancels what
// is in flight and waits for it, so that none of the pipeline's functions runs afterwards.
//
// One thread or coroutine at a time takes items; a second one at the same time gets
// error(wrong_thread).
//
// A run can be neither copied nor moved, so std::make_unique(runtime.run(samples)) does not
// compile. A function returns it by value: `return where.run(samples);`. A class keeps it as a
// member, which is either initialized from such a call, or constructed in a std::optional:
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
//
// The runtime must outlive the run. The run keeps the pipeline.
template <class T>
class [[nodiscard("a run that nobody holds ends at once: take its items")]] run {
 public:
  class iterator;

  run(runtime& where, const pipeline<T>& what, const run_options& options)
      : run(where, what, options, nullptr) {}
  run(run&&) = delete;  // a run cannot be moved: construct it in a std::optional, by emplace
  ~run() {
    consumer_.ended();
    state_->failures().tell_no_more();
    state_->end();
  }

  // Awaits the next item; empty at the end. Rethrows the run's failure, a stage_error, once all
  // items before it have been taken; after that the run is at its end. Throws error(stopped) when
  // the run or the awaiting coroutine has been asked to stop.
  task<std::optional<T>> next() {
    detail::alone taking(taken_);
    if (ended_) co_return std::nullopt;
    consumer_.asked();
    std::optional<T> item;
    lineage origin;
    {
      auto next = std::exchange(in_hand_, std::nullopt);
      detail::stopwatch waiting(state_->sink.starving);
      detail::wanted_item wanted(*state_, items_.size());
      if (!next) next = co_await items_.pop();
      if (next) {
        item.emplace(std::move(next->item));
        origin = std::move(next->origin);
      }
    }
    if (item) {
      state_->count_delivered();
      state_->progress().note(origin);
      consumer_.given(origin, state_->arrows(), items_);
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

  // The same, but throws error(timed_out) when after `limit` no item is ready, nor the run at its
  // end, with all functions that it has called. The run goes on: its next item may be awaited
  // again. Needs a runtime.
  task<std::optional<T>> next(std::chrono::nanoseconds limit) {
    co_await with_timeout(limit, look_ahead(), "wait for an item of a run");
    co_return co_await next();
  }

  // The same for an ordinary thread, which they block. A limit holds also where functions keep all
  // threads of the CPU pool.
  std::optional<T> wait_next() try { return sync_wait(next()); } catch (const std::bad_alloc&) {
    detail::run_state::lacks_memory_to_take();
  }
  std::optional<T> wait_next(std::chrono::nanoseconds limit) try {
    auto& where = state_->runtime();
    return detail::sync_wait_on(where.reactor(0), where, next(limit));
  } catch (const std::bad_alloc&) {
    detail::run_state::lacks_memory_to_take();
  }

  // For `for (auto& item : run)` in an ordinary thread. The item is valid until the next one.
  iterator begin() { return iterator(*this); }
  std::default_sentinel_t end() const noexcept { return {}; }

  // Asks the run to stop. What was ready may still be taken; then next() throws error(stopped).
  // Any thread.
  void stop() noexcept {
    state_->failures().tell_no_more();
    children_.stop();
  }

  // What has been taken so far, to go on from in another run; see state.hpp. Items that are ready
  // but have not been taken belong to the rest. Throws error(invalid_argument) with the reason if a
  // stage makes it impossible to tell exactly. Waits until the run has opened its stages; in a
  // coroutine of a runtime, which must not wait, it throws until then. Any thread, at any time.
  lade::state state() const { return state_->state(); }

  // Any thread, at any time.
  run_statistics statistics() const { return state_->statistics(); }

  // What the stages whose concurrency is automatic work with at present, from the source on; and
  // that they shall stay with the best that has been found. Any thread, at any time.
  std::vector<stage_setting> settings() const { return state_->tuned().settings(); }
  void freeze() { state_->tuned().freeze(); }

  // Which epoch it is.
  std::uint64_t epoch() const noexcept { return state_->epoch(); }

  // The items that have failed, the last thousand of them. Any thread, at any time.
  std::vector<failure_record> failures() const { return state_->failures().records(); }

 private:
  friend class epochs<T>;
  friend run<std::uint64_t> detail::start_trial(runtime& where, const pipeline<std::uint64_t>& what,
                                                detail::profiler& profiling);

  // Begins to work when the input of the run before is over.
  run(runtime& where, const pipeline<T>& what, const run_options& options,
      std::shared_ptr<detail::run_state> before, detail::profiler* profiling = nullptr)
      : use_(where),
        pipeline_(what),
        state_(std::make_shared<detail::run_state>(where, options, children_, before.get(),
                                                   profiling)),
        items_(options.ready),
        consumer_(options.trace),
        children_(state_->surroundings()) {
    where.require_same_process();
    watch_.emplace(state_);
    children_.start(fill(pipeline_, state_, items_, std::move(before)));
  }

  // An item that waits for the consumer. A class around it because items may be aggregates, which
  // GCC 12 does not let a channel carry.
  class ready {
   public:
    ready(T&& next, lineage positions) : item(std::move(next)), origin(std::move(positions)) {}
    T item;
    lineage origin;
  };

  class closer {
   public:
    closer(channel<ready>& items, detail::run_state& state) noexcept
        : items_(items), state_(state) {}
    closer(const closer&) = delete;
    ~closer() {
      state_.progress().settle();
      state_.input_over().set();
      items_.close();
    }

   private:
    channel<ready>& items_;
    detail::run_state& state_;
  };

  class children_watch {
   public:
    explicit children_watch(detail::run_state& state) noexcept : state_(state) {}
    children_watch(const children_watch&) = delete;
    ~children_watch() { state_.children_ended(); }

   private:
    detail::run_state& state_;
  };

  // Waits until next() need not.
  task<> look_ahead() {
    detail::alone taking(taken_);
    if (in_hand_ || ended_) co_return;
    {
      detail::stopwatch waiting(state_->sink.starving);
      detail::wanted_item wanted(*state_, items_.size());
      in_hand_ = co_await items_.pop();
    }
    if (in_hand_) co_return;
    state_->end();
    co_await children_.ended();
  }

  // Rethrows what the run has ended with. Not a coroutine, which would take memory.
  void children_ended(const std::exception_ptr& failure) {
    state_->children_ended();
    state_->arrows().finish();
    if (failure) std::rethrow_exception(failure);
  }

  // Pulls the items and has them ready for the consumer; one for which there may not be the memory
  // only when the consumer waits for it.
  static task<> fill(const pipeline<T>& what, std::shared_ptr<detail::run_state> state,
                     channel<ready>& items, std::shared_ptr<detail::run_state> before) {
    closer at_the_end(items, *state);
    if (before) {
      co_await before->input_over();
      state->tuned().begin_epoch();
      before.reset();
    }
    const bool is_trial = state->profiling();
    if (auto wanted = is_trial ? 0 : detail::take_profile_wanted())
      co_await detail::tell_profile(*state, what.last(), wanted);
    state->begin();
    detail::begin_telling(state);
    auto& surroundings = co_await detail::this_context_reference();
    state->make_plan(*what.last());
    detail::open_input until_all_are(state);
    auto source = what.open(detail::open_context(state, surroundings.stop));
    until_all_are.end();
    if (!is_trial) detail::node_base::warn_of_same_epoch(*state);
    state->progress().begin(state->stages().names());
    state->progress().settle();
    std::uint64_t pulled = 0;
    while (auto item = co_await source.next()) {
      if (state->progress().is_taken(source.origin())) continue;
      {
        ready next(std::move(*item), source.origin());
        state->wanted()->await(detail::demand::none);  // the consumer has it before it is resumed
        detail::stopwatch waiting(state->sink.output_wait);
        co_await items.push(std::move(next));
      }
      if (!state->short_of_memory(++pulled)) continue;
      detail::stopwatch waiting(state->memory_wait);
      co_await items.wanted();
    }
    state->progress().end();
  }

  detail::runtime_use use_;
  const pipeline<T> pipeline_;  // owns the closures whose coroutines are children
  std::shared_ptr<detail::run_state> state_;
  channel<ready> items_;
  std::optional<ready> in_hand_;  // that a wait with a limit has ended with
  detail::consumer_trace consumer_;
  bool ended_ = false;
  std::atomic<bool> taken_ = false;  // somebody takes an item
  children_watch after_children_{*state_};
  scope children_;  // ends before what its children use
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
    item_.reset();  // gives its memory back before the next is waited for
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
