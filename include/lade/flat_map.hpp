// flat_map: several items of one.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/autotune.hpp>
#include <lade/channel.hpp>
#include <lade/detail/concurrent.hpp>
#include <lade/detail/continue_on.hpp>
#include <lade/detail/overview.hpp>
#include <lade/detail/owner.hpp>
#include <lade/detail/path_place.hpp>
#include <lade/detail/run_state.hpp>
#include <lade/error.hpp>
#include <lade/failure.hpp>
#include <lade/pipeline.hpp>
#include <lade/semaphore.hpp>
#include <lade/task.hpp>
#include <lade/this_context.hpp>
#include <lade/thread_pool.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <ranges>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace lade {

struct flat_map_options {
  // How many items are taken apart at a time, beside each other on the CPU pool. 1: the function is
  // called when the next stage asks for an item, on that stage's thread, without a queue.
  unsigned concurrency = 1;

  // How many parts of each item may wait for their turn.
  std::size_t buffer = 16;

  // Input: all parts of one item, then those of the next. Completion: as they come. Those of
  // several items are then mixed, so that there is no state to go on from, and parts of one item
  // may draw the same random numbers.
  item_order order = item_order::input;

  // What becomes of items that fail; see failure.hpp. Parts that have been given are kept, so there
  // are no retries: what may be repeated belongs into a map before.
  std::optional<lade::on_error> on_error = {};  // the run's if not given
  lade::error_budget error_budget = {};

  // Where items are taken apart, if not on the CPU pool of the runtime. Must outlive the runs.
  thread_pool* pool = nullptr;

  std::string_view name = {};  // in statistics and errors
};

namespace detail {

// Parts of one item, or of all, on their way to the next stage. Any thread.
template <class T>
class parts_lane {
 public:
  // A part, or the lineage of an item without parts.
  class part {
   public:
    part(T value, lineage positions, const path_place& place)
        : item(std::move(value)), origin(std::move(positions)), mark_(place) {}
    part(lineage positions, const path_place& place) : origin(std::move(positions)), mark_(place) {}
    std::optional<T> item;
    lineage origin;

   private:
    underway mark_;
  };

  explicit parts_lane(std::size_t capacity) : parts_(capacity) {}

  auto push(part next) { return parts_.push(std::move(next)); }
  auto pop() { return parts_.pop(); }

  // Nothing comes any more: because of a failure, of which the first counts, or at the end.
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
  mutable std::mutex mutex_;
  std::exception_ptr failure_;
};

// Takes several items apart at a time: each has a coroutine of its own, which puts the parts into a
// lane. The lanes are read in the order of the items, or there is one for all.
template <class In, class Out, class Stage>
class spreading : public std::enable_shared_from_this<spreading<In, Out, Stage>>,
                  private overviewed {
 public:
  spreading(const opening& run, stage_counters& counters, const Stage& stage, unsigned concurrency)
      : run_(run),
        counters_(counters),
        stage_(stage),
        concurrency_(concurrency),
        room_(concurrency),
        lanes_(concurrency),
        feeder_context_(run.run->surroundings(stop_.get_token())),
        on_consumer_stop_(run.stop, close_on_stop<spreading>{*this}) {
    work_for(counters, feeder_context_);
    feeder_context_.place = &run_.place;
    parts_context_ = feeder_context_;
    if (auto* pool = stage.options().pool) {
      counters.own_threads = pool->size();
      parts_context_.home = pool;
    }
    run.run->note_workers(counters, concurrency, false, concurrency);
    run.run->watch(*this);
  }

  ~spreading() { run_.run->unwatch(*this); }

  // What the stage before is stopped by.
  std::stop_token stop_token() const noexcept { return stop_.get_token(); }

  void start(async_generator<In> upstream) {
    launch(feeder_context_, feed(*this, std::move(upstream)));
  }

  // The parts. Destroying the generator ends the stage.
  static async_generator<Out> deliver(std::shared_ptr<spreading> stage) {
    return deliver_from(owner<spreading>(std::move(stage)));
  }

  void close() noexcept {
    request_stop(stop_);
    lanes_.close();
  }

 private:
  using lane = parts_lane<Out>;
  using part = typename lane::part;

  static async_generator<Out> deliver_from(owner<spreading> self) {
    while (auto lane = co_await self->lanes_.pop()) {
      while (auto next = co_await self->next_of(**lane)) {
        if (!next->item) {
          co_await consume(next->origin);
          continue;
        }
        bump(self->counters_.out);
        with_lineage<Out> yielded{next->origin, *next->item};
        co_yield yielded;
      }
      (*lane)->rethrow_failure();
    }
    if (self->stop_.stop_requested()) throw error(errc::stopped, self->counters_.name());
    if (self->input_failure_) std::rethrow_exception(self->input_failure_);
  }

  task<std::optional<part>> next_of(lane& from) {
    stopwatch waiting(counters_.starving);
    wanted_ = true;
    auto next = co_await from.pop();
    wanted_ = false;
    co_return next;
  }

  void launch(const context& surroundings, task<> work) {
    run_.run->children().start(keep_alive(surroundings, this->shared_from_this(), std::move(work)));
  }

  // The surroundings are part of the stage.
  static task<> keep_alive(const context& surroundings, std::shared_ptr<spreading>, task<> work) {
    co_await under(surroundings, std::move(work));
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
    if (stage_.options().order == item_order::completion) of_all = co_await begin_lane();
    while (true) {
      co_await room_.acquire();
      auto* item = co_await next_item(upstream);
      if (!item) co_return;
      bump(counters_.in);
      auto to = of_all;
      if (!to) to = co_await begin_lane();
      underway mark(run_.place);
      launch(parts_context_, take_apart(*this, std::move(to), std::move(*item), upstream.origin(),
                                        std::move(mark)));
    }
  }

  task<In*> next_item(async_generator<In>& upstream) {
    stopwatch waiting(counters_.input_wait);
    co_return co_await upstream.next();
  }

  // A lane that ends when nobody holds what this returns.
  task<std::shared_ptr<lane>> begin_lane() {
    auto read = std::make_shared<lane>(stage_.options().buffer);
    co_await lanes_.push(read);
    co_return std::shared_ptr<lane>(read.get(), [read](lane*) { read->end(); });
  }

  static task<> take_apart(spreading& self, std::shared_ptr<lane> to, In item, lineage origin,
                           underway) {
    co_await continue_on(*self.parts_context_.home);
    auto place = self.enter(name_of(item), origin);
    try {
      bool some = false;
      auto parts =
          self.stage_.template parts<Out>(std::move(item), origin, self.run_, self.counters_);
      while (auto* next = co_await self.next_part(parts)) {
        some = true;
        part made(std::move(*next), origin, self.run_.place);
        co_await to->push(std::move(made));
      }
      part nothing(origin, self.run_.place);
      if (!some) co_await to->push(std::move(nothing));
    } catch (...) {
      to->fail(std::current_exception());
    }
    self.leave(place);
    self.room_.release();
  }

  task<Out*> next_part(async_generator<Out>& parts) {
    auto begun = clock::now();
    auto* next = co_await parts.next();
    auto taken = clock::now() - begun;
    counters_.busy.fetch_add(taken.count(), std::memory_order_relaxed);
    counters_.latency.add(taken);
    co_return next;
  }

  // For overviews: an item that is taken apart.
  using in_hand = std::list<item_overview>;
  in_hand::iterator enter(std::string name, const lineage& origin) {
    std::lock_guard lock(mutex_);
    return in_hand_.insert(in_hand_.end(), {.name = std::move(name),
                                            .origin = origin,
                                            .what = item_overview::doing::works,
                                            .since = clock::now()});
  }
  void leave(in_hand::iterator place) {
    std::lock_guard lock(mutex_);
    in_hand_.erase(place);
  }

  std::string overview(clock::time_point at) const override {
    using enum stage_overview::feeding;
    std::lock_guard lock(mutex_);
    auto free = concurrency_ - in_hand_.size();
    return to_string(counters_.name(),
                     {.slots = concurrency_,
                      .free = free,
                      .idle_workers = free,
                      .feeder = free > 0 ? waits_for_input : waits_for_room,
                      .wanted = wanted_,
                      .items = {in_hand_.begin(), in_hand_.end()}},
                     at);
  }

  const opening run_;
  stage_counters& counters_;
  const Stage stage_;
  const std::size_t concurrency_;
  semaphore room_;  // for items that are taken apart
  channel<std::shared_ptr<lane>> lanes_;
  std::stop_source stop_;
  context feeder_context_;
  context parts_context_;
  std::exception_ptr input_failure_;  // before the lanes are closed
  std::atomic<bool> wanted_ = false;  // by the next stage
  mutable std::mutex mutex_;
  in_hand in_hand_;
  std::stop_callback<close_on_stop<spreading>> on_consumer_stop_;
};

}  // namespace detail

template <class F>
class flat_map_stage {
 public:
  flat_map_stage(F function, const flat_map_options& options)
      : function_(std::move(function)),
        options_(options),
        name_(detail::stage_name<F>(options.name, "flat_map")) {
    if (options.concurrency == 0) throw error(errc::invalid_argument, name_, "a concurrency of 0");
    if (options.concurrency == automatic)
      throw error(errc::invalid_argument, name_, "its concurrency cannot be automatic");
  }

  template <class In>
  auto attach(const pipeline<In>& in) const {
    using out = part_of<In>;
    return detail::make_pipeline<out>(
        in.length() + 1, [in, self = *this](const detail::opening& run) {
          auto& counters = run.add_stage(self.name_);
          auto whole = run.making_parts(self.name_);
          auto wide = run.concurrency.value_or(self.options_.concurrency);
          return wide == 1 && !self.options_.pool
                     ? spread<out>(in.open(whole), self, run, counters)
                     : self.template spread_wide<out>(in, whole, counters, wide);
        });
  }

  const flat_map_options& options() const noexcept { return options_; }

  // The parts of one item, each with the item's lineage. What is yielded goes on before the
  // function's generator ends; a failure keeps what was yielded before it.
  template <class Out, class In>
  async_generator<Out> parts(In item, lineage origin, detail::opening run,
                             detail::stage_counters& counters) const {
    detail::kept_name<In> name(item);
    detail::hooked_call call(*run.run, counters, item, origin);
    auto made = each<Out>(function_, std::move(item));
    while (true) {
      Out* part = nullptr;
      std::exception_ptr failure;
      try {
        part = co_await made.next();
        if (!part) call.leave(nullptr);
      } catch (...) {
        call.leave(std::current_exception());
        failure = run.failure(counters, policy(), name.text(), origin);
      }
      if (failure) std::rethrow_exception(failure);
      if (!part) co_return;
      detail::with_lineage<Out> yielded{origin, *part};
      co_yield yielded;
    }
  }

 private:
  template <class Many>
  struct element {
    using type = std::ranges::range_value_t<Many>;
  };
  template <class T>
  struct element<async_generator<T>> {
    using type = T;
  };
  template <class In>
  using part_of = typename element<std::remove_cvref_t<std::invoke_result_t<const F&, In>>>::type;

  template <class Out, class In>
  static async_generator<Out> spread(async_generator<In> in, flat_map_stage self,
                                     detail::opening run, detail::stage_counters& counters) {
    while (auto* item = co_await in.next()) {
      detail::bump(counters.in);
      auto parts = self.template parts<Out>(std::move(*item), in.origin(), run, counters);
      while (auto* part = co_await parts.next()) {
        detail::bump(counters.out);
        co_yield *part;
      }
    }
  }

  template <class Out, class In>
  async_generator<Out> spread_wide(const pipeline<In>& in, const detail::opening& run,
                                   detail::stage_counters& counters, unsigned concurrency) const {
    if (options_.order == item_order::completion)
      run.refuse_state(name_ + " gives parts of several items as they come");
    using spreading = detail::spreading<In, Out, flat_map_stage>;
    auto stage = std::make_shared<spreading>(run, counters, *this, concurrency);
    stage->start(in.open(run.until(stage->stop_token())));
    return spreading::deliver(stage);
  }

  template <class Out, class In>
  static async_generator<Out> each(const F& function, In item) {
    auto parts = std::invoke(function, std::move(item));
    if constexpr (requires { parts.next(); }) {
      while (auto* part = co_await parts.next()) co_yield *part;
    } else {
      for (auto&& part : parts) {
        Out value(std::move(part));
        co_yield value;
      }
    }
  }

  detail::failure_policy policy() const {
    return {.finally = options_.on_error, .budget = options_.error_budget};
  }

  F function_;
  flat_map_options options_;
  std::string name_;
};

// Replaces every item by the items of `function(item)`: a range, or an async_generator, whose items
// go on as they come. Called when the next stage asks for an item, on that stage's thread of the
// CPU pool, unless the options say otherwise. Throws error(invalid_argument) for a concurrency of
// 0 or `automatic`.
template <class F>
flat_map_stage<std::decay_t<F>> flat_map(F&& function, const flat_map_options& options = {}) {
  return {std::forward<F>(function), options};
}

}  // namespace lade
