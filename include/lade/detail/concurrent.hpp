// The concurrent stage: a feeder, workers and a ring of slots between two generators.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/ring.hpp>
#include <lade/detail/run_state.hpp>
#include <lade/pipeline.hpp>
#include <lade/task.hpp>
#include <lade/this_context.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
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
  item_order order = item_order::input;
  on_error policy = on_error::fail;
};

// Runs coroutines of its own beside the stages: one feeder, which fills slots from the generator
// before, and workers, which apply a function to them. Ends with the generator of `deliver`.
template <class In, class Out>
class concurrent_stage : public std::enable_shared_from_this<concurrent_stage<In, Out>> {
 public:
  concurrent_stage(const opening& run, stage_counters& counters, const concurrent_options& options)
      : run_(run.run),
        counters_(counters),
        options_(options),
        slots_(options.slots),
        ring_(options.slots, options.order, pool(), workers_home(), run_->runtime().memory(),
              counters),
        feeder_context_(run_->surroundings(stop_.get_token())),
        worker_context_(feeder_context_),
        on_consumer_stop_(run.stop, close_stage{*this}) {
    counters_.workers = options.workers;
    counters_.on_reactor = options.on_reactor;
    worker_context_.home = &workers_home();
    feeder_context_.stage = worker_context_.stage = &counters_;
  }

  // What the stage before is stopped by.
  std::stop_token stop_token() const noexcept { return stop_.get_token(); }

  // Starts the coroutines. `work(in, origin)` gives an optional Out, or a task of one.
  template <class Work>
  void start(async_generator<In> upstream, Work work) {
    auto self = this->shared_from_this();
    for (unsigned i = 0; i < options_.workers; ++i)
      run_->children().start(run_in(worker_context_, self, work_on(self, work)));
    run_->children().start(run_in(feeder_context_, self, feed(self, std::move(upstream))));
  }

  // A stage without workers: items pass through the slots as they are.
  void start(async_generator<In> upstream)
    requires std::same_as<In, Out>
  {
    auto self = this->shared_from_this();
    run_->children().start(run_in(feeder_context_, self, feed(self, std::move(upstream))));
  }

  static async_generator<Out> deliver(std::shared_ptr<concurrent_stage> self) {
    closing_guard guard(*self);
    std::size_t taken = ring::none;
    while ((taken = co_await self->ring_.take_done(taken)) != ring::none) {
      auto& item = self->slots_[taken];
      if (item.failure) std::rethrow_exception(item.failure);
      if (item.out) {
        bump(self->counters_.out);
        with_lineage<Out> yielded{item.origin, *item.out};
        co_yield yielded;
      } else {
        co_await consume(item.origin);
      }
      item.out.reset();
    }
    if (self->stop_.stop_requested()) throw error(errc::stopped, self->counters_.name());
    if (self->input_failure_) std::rethrow_exception(self->input_failure_);
  }

 private:
  struct slot {
    std::optional<In> in;
    std::optional<Out> out;  // stays empty when the item is dropped
    std::exception_ptr failure;
    lineage origin;
  };

  struct close_stage {
    concurrent_stage& self;
    void operator()() const noexcept { self.close(); }
  };

  // Ends the stage when its generator ends, also early.
  class closing_guard {
   public:
    explicit closing_guard(concurrent_stage& stage) noexcept : stage_(stage) {}
    closing_guard(const closing_guard&) = delete;
    ~closing_guard() { stage_.close(); }

   private:
    concurrent_stage& stage_;
  };

  executor& pool() noexcept { return run_->runtime().pool(); }
  executor& workers_home() noexcept {
    if (options_.on_reactor) return run_->runtime().reactor();
    return pool();
  }

  void close() noexcept {
    stop_.request_stop();
    ring_.close();
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
    while (true) {
      auto free = co_await ring_.take_free();
      if (free == ring::none) co_return;
      auto asked = clock::now();
      auto* item = co_await upstream.next();
      bump(counters_.input_wait, (clock::now() - asked).count());
      if (!item) co_return;
      bump(counters_.in);
      auto& filled = slots_[free];
      filled.origin = upstream.origin();
      filled.failure = nullptr;
      if constexpr (std::same_as<In, Out>) {
        if (options_.workers == 0) {
          filled.out.emplace(std::move(*item));
          ring_.fill_done(free);
          continue;
        }
      }
      filled.in.emplace(std::move(*item));
      ring_.fill(free);
    }
  }

  template <class Work>
  static task<> work_on(std::shared_ptr<concurrent_stage> self, Work work) {
    co_await continue_on(self->workers_home());
    std::size_t taken = ring::none;
    while ((taken = co_await self->ring_.take_filled(taken)) != ring::none) {
      auto& item = self->slots_[taken];
      auto name = name_of(*item.in);
      auto started = clock::now();
      try {
        using result = decltype(work(std::move(*item.in), item.origin));
        if constexpr (outcome_of<result>::is_task)
          item.out.emplace(co_await work(std::move(*item.in), item.origin));
        else
          item.out.emplace(work(std::move(*item.in), item.origin));
      } catch (...) {
        self->fail(item, std::move(name));
      }
      item.in.reset();
      self->note_time(clock::now() - started);
    }
  }

  void fail(slot& failed, std::string name) {
    failed.failure = run_->fail(counters_, options_.policy, std::move(name), failed.origin);
  }

  void note_time(clock::duration taken) noexcept {
    counters_.busy.fetch_add(taken.count(), std::memory_order_relaxed);
    counters_.latency.add(taken);
  }

  std::shared_ptr<run_state> run_;
  stage_counters& counters_;
  concurrent_options options_;
  std::vector<slot> slots_;
  std::stop_source stop_;
  ring ring_;
  context feeder_context_;
  context worker_context_;
  std::exception_ptr input_failure_;
  std::stop_callback<close_stage> on_consumer_stop_;
};

// Opens the upstream, starts a stage behind it, and gives the stage's generator.
template <class In, class Out, class Work>
async_generator<Out> open_concurrent(const pipeline<In>& in, const opening& run,
                                     const std::string& name, const concurrent_options& options,
                                     Work work) {
  auto& counters = run.run->add_stage(name);
  auto stage = std::make_shared<concurrent_stage<In, Out>>(run, counters, options);
  stage->start(in.open({run.run, stage->stop_token()}), std::move(work));
  return concurrent_stage<In, Out>::deliver(stage);
}

}  // namespace lade::detail
