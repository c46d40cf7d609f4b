// The concurrent stage: a feeder, workers and a ring of slots between two generators.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/detail/concurrent_core.hpp>
#include <lade/detail/continue_on.hpp>
#include <lade/detail/items.hpp>
#include <lade/detail/operation.hpp>
#include <lade/detail/owner.hpp>
#include <lade/detail/run_state.hpp>
#include <lade/detail/slot_ring.hpp>
#include <lade/pipeline.hpp>
#include <lade/sleep.hpp>
#include <lade/task.hpp>

#include <any>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
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

// The calls of one worker, whatever it calls, so that a stage's coroutines are compiled once for
// all functions of the same items: of functions that give an item, or nothing, and of those that
// give a task.
template <class In, class Out>
class plain_calls {
 public:
  explicit plain_calls(bool tells) noexcept : tells_memory(tells) {}
  virtual ~plain_calls() = default;
  virtual void call(In&& in, const item_identity& identity, std::optional<Out>& out) = 0;
  virtual std::size_t memory_needed(const In& in) const = 0;
  const bool tells_memory;  // whether memory is to be waited for before a call
};
template <class In, class Result>
class task_calls {
 public:
  virtual ~task_calls() = default;
  virtual task<Result> call(In&& in, const item_identity& identity) = 0;
};

template <class In, class Out, class Work>
class plain_calls_of final : public plain_calls<In, Out> {
  static constexpr bool tells = tells_memory<std::remove_cvref_t<worker_of<Work>>, In>;

 public:
  explicit plain_calls_of(const Work& work) : plain_calls<In, Out>(tells), work_(work) {}
  void call(In&& in, const item_identity& identity, std::optional<Out>& out) override {
    assign(out, work_(std::move(in), identity));
  }
  std::size_t memory_needed(const In& in) const override {
    if constexpr (tells) return work_.memory_needed(in);
    return 0;
  }

 private:
  worker_of<Work> work_;
};

template <class In, class Result, class Work>
class task_calls_of final : public task_calls<In, Result> {
 public:
  explicit task_calls_of(const Work& work) : work_(work) {}
  task<Result> call(In&& in, const item_identity& identity) override {
    return work_(std::move(in), identity);
  }

 private:
  worker_of<Work> work_;
};

// Makes what one worker calls.
template <class Calls>
using begin_calls = std::function<std::unique_ptr<Calls>()>;

template <class In, class Out, class Work>
auto calls_of(Work work) {
  using result = std::invoke_result_t<worker_of<Work>&, In, const item_identity&>;
  using outcome = outcome_of<result>;
  using value = typename outcome::type;
  using calls = std::conditional_t<outcome::is_task, task_calls<In, value>, plain_calls<In, Out>>;
  using made = std::conditional_t<outcome::is_task, task_calls_of<In, value, Work>,
                                  plain_calls_of<In, Out, Work>>;
  auto shared = std::make_shared<const Work>(std::move(work));
  return begin_calls<calls>([shared] { return std::make_unique<made>(*shared); });
}

// Runs coroutines of its own beside the stages: one feeder, which fills slots from the generator
// before, and workers, which apply a function to them. Ends with the generator of `deliver`.
template <class In, class Out>
class concurrent_stage : public concurrent_core {
 public:
  concurrent_stage(const opening& run, stage_counters& counters, const concurrent_options& options)
      : concurrent_core(run, counters, options), items_(options.slots) {}

  // Starts the coroutines. `work(in, identity)` gives an Out, or a task of one; if there is a
  // Work::worker, every worker makes one of the work and calls that.
  template <class Work>
  void start(async_generator<In> upstream, Work work) {
    auto begin = calls_of<In, Out>(std::move(work));
    for (auto& surroundings : worker_contexts_)
      run_->start(this->shared_from_this(), surroundings, work_on(*this, surroundings, begin));
    start(std::move(upstream));
  }

  // A stage without workers: items pass through the slots as they are.
  void start(async_generator<In> upstream) {
    run_->start(this->shared_from_this(), feeder_context_, feed(*this, std::move(upstream)));
  }

  // The stage's items. Destroying the generator, also one that was never asked for an item, ends
  // the stage.
  static async_generator<Out> deliver(owner<concurrent_stage> self) {
    std::size_t taken = slot_ring::none;
    while ((taken = co_await self->ring_.take_done(taken)) != slot_ring::none) {
      auto& slot = self->slots_[taken];
      auto& out = self->items_[taken].out;
      if (slot.failure) {
        self->close();
        std::rethrow_exception(slot.failure);
      }
      if (out) {
        count_out(self->counters_, *out);
        with_lineage<Out> yielded{slot.origin, *out};
        co_yield yielded;
      } else {
        co_await consume(slot.origin);
      }
      out.reset();
      slot.mark = {};
    }
    if (self->stop_.stop_requested()) throw error(errc::stopped, self->counters_.name());
    if (self->input_failure_) std::rethrow_exception(self->input_failure_);
  }

 private:
  struct slot_values {
    std::optional<In> in;
    std::optional<Out> out;  // stays empty when the item is dropped
  };

  static task<> feed(concurrent_stage& self, async_generator<In> upstream) {
    try {
      co_await self.fill_slots(upstream);
    } catch (...) {
      self.input_failure_ = std::current_exception();
    }
    self.ring_.end_input();
  }

  task<> fill_slots(async_generator<In>& upstream) {
    identify identity;
    auto last = slot_ring::none;
    while (true) {
      auto free = co_await ring_.take_free(std::exchange(last, slot_ring::none));
      if (free == slot_ring::none) co_return;
      In* next = nullptr;
      {
        stopwatch waiting(counters_.input_wait);
        next = co_await upstream.next();
      }
      if (!next) co_return;
      auto& slot = slots_[free];
      note_input(slot, upstream.origin(), identity(upstream.origin()));
      if (run_->watches_stalls()) slot.name = name_of(*next);
      if constexpr (std::same_as<In, Out>) {
        if (options_.workers == 0) {
          items_[free].out.emplace(std::move(*next));
          ring_.fill_done(free);
          note_levels();
          continue;
        }
      }
      items_[free].in.emplace(std::move(*next));
      last = free;
    }
  }

  template <class Calls>
  static task<> work_on(concurrent_stage& self, const context& surroundings,
                        begin_calls<Calls> begin) {
    auto* home = surroundings.home;
    call_log log(self, surroundings);
    call_memory memory(*surroundings.memory, self.counters_);
    co_await continue_on(*home);
    std::exception_ptr failure;
    auto worker = self.begin_worker(begin, failure);
    kept_name<In> name;
    std::size_t taken = slot_ring::none;
    while ((taken = co_await self.ring_.take_filled(taken, *home)) != slot_ring::none) {
      if (log.had_its_turn()) co_await give_way(*home);
      auto& slot = self.slots_[taken];
      auto& item = self.items_[taken];
      slot.failure = failure;
      surroundings.claim->set_item(taken);
      for (unsigned attempt = 1; worker; ++attempt) {
        std::optional<In> kept;
        std::optional<clock::duration> pause;
        name.keep(*item.in);
        hooked_call visit(*self.run_, self.counters_, *item.in, slot.origin, attempt);
        if constexpr (computes<Calls>) {
          if (worker->tells_memory) {
            auto reserved = co_await reserve_for(*worker, *item.in);
            memory.reserve(std::move(reserved));
          }
        }
        log.begin(slot, attempt);
        try {
          kept = self.keep_for_retry(*item.in, attempt);
          if constexpr (computes<Calls>)
            compute(*worker, slot, item, memory);
          else
            assign(item.out,
                   co_await self.in_time(worker->call(std::move(*item.in), slot.identity), slot));
          self.require_in_time(slot, surroundings);
          visit.leave(nullptr);
        } catch (...) {
          visit.leave(std::current_exception());
          item.out.reset();
          pause = self.failed(slot, name.text(), attempt, kept.has_value());
          if (!pause && !slot.failure) substitute(item.out, self.options_.substitute);
        }
        log.end(slot, name, pause);
        if (!pause || !co_await sleep_until(clock::now() + *pause)) break;
        item.in = std::move(kept);
      }
      item.in.reset();
      if (auto* moved = self.update_home(surroundings); moved != home) {
        home = moved;
        co_await continue_on(*home);
      }
    }
  }

  template <class Calls>
  static constexpr bool computes = std::same_as<Calls, plain_calls<In, Out>>;

  static void compute(plain_calls<In, Out>& worker, const slot_state& slot, slot_values& item,
                      call_memory& memory) {
    call_memory::entered inside(memory);
    worker.call(std::move(*item.in), slot.identity, item.out);
  }

  // What a worker calls; if there is none, all its items fail.
  template <class Calls>
  std::unique_ptr<Calls> begin_worker(const begin_calls<Calls>& begin,
                                      std::exception_ptr& failure) {
    try {
      return begin();
    } catch (...) {
      failure = run_->fail(counters_, {on_error::fail}, {}, {});
      return nullptr;
    }
  }

  // The work, asked to stop when the time of its item is over.
  template <class T>
  task<T> in_time(task<T> work, const slot_state& item) const {
    if (!options_.limits.any()) return work;
    return with_timeout(time_left(item), std::move(work), late);
  }

  // The item as it is, if the function may be called for it once more.
  std::optional<In> keep_for_retry(const In& in, unsigned attempt) const {
    if constexpr (std::copy_constructible<In>)
      if (attempt < options_.policy.retry.attempts) return in;
    return std::nullopt;
  }

  std::vector<slot_values> items_;
};

// Opens the upstream, starts a stage behind it, and gives the stage's generator.
template <class In, class Out, class Work>
async_generator<Out> open_concurrent(const pipeline<In>& in, const opening& run,
                                     const std::string& name, const concurrent_options& options,
                                     Work work) {
  auto& counters = run.add_stage(name);
  owner stage(
      std::make_shared<concurrent_stage<In, Out>>(run, counters, options.with(run.concurrency)));
  auto upstream = run.until(stage->stop_token()).taken_by(stage->wanted());
  if (options.order == item_order::completion)
    upstream = upstream.reordering("a stage that gives items as they finish");
  stage->start(in.open(upstream), std::move(work));
  return concurrent_stage<In, Out>::deliver(std::move(stage));
}

}  // namespace lade::detail
