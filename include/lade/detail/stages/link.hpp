// A bounded fan-in queue between the coroutines that make items and the next stage.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/channel.hpp>
#include <lade/detail/coroutines/owner.hpp>
#include <lade/detail/memory/demand.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/open_context.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/stages/split.hpp>
#include <lade/error.hpp>
#include <lade/stats.hpp>
#include <lade/task.hpp>
#include <lade/trace.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

namespace lade::detail {

struct link_options {
  std::size_t slots;           // queued items at most
  std::size_t ends_after = 1;  // inputs that must end before the link does; 0: no inputs

  // Whether the link carries the results of the path that contains it, for a tee or a
  // route_batches, which takes them in turn. The split then accounts for the results and the
  // demand.
  bool carries_results = false;
};

// A bounded queue with a coroutine for each input, which drains a generator into it:
//
//   generator ─ drain ─╮
//   generator ─ drain ─┼─> [ up to `slots` items ] ─ deliver() ─> next stage
//   generator ─ drain ─╯
//
// - Ownership: the generator of deliver() owns the link. Destroying it stops the inputs. Each drain
//   keeps the link alive until it has ended.
// - Blocking: a drain suspends while the queue is full, deliver() while it is empty. Both park in
//   the channel, under its mutex, so no wake-up is lost.
// - End: when `ends_after` inputs have ended, or the first has failed. Items in the queue are still
//   delivered; then the first failure is rethrown.
// - Lock: mutex_ guards the number of live inputs and the first failure.
// - Memory: the link's demand makes the item that the consumer waits for urgent.
template <class T>
class link : public std::enable_shared_from_this<link<T>> {
 public:
  link(const open_context& run, const link_options& options)
      : run_(run),
        options_(options),
        items_(options.slots),
        live_(options.ends_after),
        wanted_(std::make_shared<demand>(run.wanted)),
        claim_(wanted_),
        context_(run.run->surroundings(stop_.get_token())),
        on_consumer_stop_(run.stop, close_on_stop<link>{*this}) {
    if (!options.carries_results) context_.claim = &claim_;
    context_.place = run_.path.get();
    if (live_ == 0) items_.close();
  }

  // The context to open the inputs with: the link stops them, and they serve its demand.
  open_context before() const {
    auto input = run_.until(stop_.get_token());
    return options_.carries_results ? input : input.taken_by(wanted_);
  }

  // Sets the stage whose statistics the link and its inputs add to. Must be called before start().
  void count_for(stage_counters& counters) {
    work_for(counters, context_);
    if (!options_.carries_results)
      run_.run->stages().note_workers(counters, {.slots = options_.slots, .gathers = true});
  }

  // Starts the drain of an input. `end` is kept alive until the input has ended.
  void start(async_generator<T> input, std::shared_ptr<const void> end = nullptr) {
    run_.run->start(this->shared_from_this(), context_,
                    drain(*this, std::move(input), std::move(end)));
  }

  // Announces that the upstream has failed, so that all inputs will report the same failure. The
  // link then ends only when all inputs have ended, so that items which they still hold are
  // delivered.
  void expect_failure() noexcept {
    std::lock_guard lock(mutex_);
    patient_ = true;
  }

  // Yields the items of all inputs.
  static async_generator<T> deliver(owner<link> self) {
    while (auto next = co_await self->next()) {
      with_lineage<T> yielded{next->origin, next->item};
      co_yield yielded;
    }
    if (self->is_at_standstill()) co_return;  // the split reports why
    if (self->stop_.stop_requested()) throw error(errc::stopped, self->context_.stage->name());
    if (auto failure = self->failure()) std::rethrow_exception(failure);
  }

  void close() noexcept {
    request_stop(stop_);
    items_.close();
  }

 private:
  using queued = underway_item<T>;

  static task<> drain(link& self, async_generator<T> input, std::shared_ptr<const void>) {
    try {
      while (auto* item = co_await input.next()) {
        queued next(std::move(*item), input.origin(), self.run_.path.get());
        self.note_made();
        co_await self.items_.push(std::move(next));
        self.note_level();
      }
      self.end(nullptr);
    } catch (...) {
      self.end(std::current_exception());
    }
  }

  task<std::optional<queued>> next() {
    stopwatch waiting(context_.stage->starving);
    note_awaited();
    auto next = co_await items_.pop();
    note_taken();
    co_return next;
  }

  void note_made() {
    if (options_.carries_results)
      run_.path->split->note_made(run_.path->path);
    else
      wanted_->await(demand::none);  // the awaited item has arrived
  }
  void note_awaited() {
    if (options_.carries_results) return run_.path->split->note_awaited(run_.path->path);
    if (items_.size() > 0) return;
    wanted_->await(demand::next);
    context_.memory->reconsider();
  }
  void note_taken() {
    if (options_.carries_results)
      run_.path->split->note_taken(run_.path->path);
    else
      wanted_->await(demand::none);
  }
  bool is_at_standstill() const {
    return options_.carries_results && run_.path->split->stuck().has_value();
  }

  void note_level() const {
    if (auto* trace = run_.run->options().trace; trace && !options_.carries_results)
      trace->add_levels(context_.stage->name(), {{"done", items_.size()}});
  }

  // Records the end of one input. Failures after the end of the link are ignored.
  void end(std::exception_ptr failure) noexcept {
    bool over = false;
    {
      std::lock_guard lock(mutex_);
      if (live_ == 0) return;
      live_ = failure && !patient_ ? 0 : live_ - 1;
      if (!failure_) failure_ = std::move(failure);
      over = live_ == 0;
    }
    if (over) items_.close();
  }

  std::exception_ptr failure() const {
    std::lock_guard lock(mutex_);
    return failure_;
  }

  const open_context run_;
  const link_options options_;
  channel<queued> items_;
  std::stop_source stop_;
  mutable std::mutex mutex_;  // guards the members below, up to failure_
  std::size_t live_;          // inputs that must end before the link does
  bool patient_ = false;
  std::exception_ptr failure_;
  const std::shared_ptr<demand> wanted_;
  memory_claim claim_;
  context context_;
  std::stop_callback<close_on_stop<link>> on_consumer_stop_;
};

// A path of a tee or a route_batches that is open but not started.
template <class T>
class opened_path {
 public:
  // `inside`: the context that all paths share.
  opened_path(const open_context& inside, const std::shared_ptr<split_base>& split,
              std::size_t number, const pipeline<T>& stages)
      : results_(std::make_shared<link<T>>(
            inside.in(split_base::path(split, number)),
            link_options{.slots = split->buffer(), .carries_results = true})),
        items_(stages.open(results_->before())) {}

  // Starts the path. `end` is kept alive until the path has ended.
  void start(stage_counters& counters, std::shared_ptr<const void> end) {
    results_->count_for(counters);
    results_->start(std::move(items_), std::move(end));
  }

  async_generator<T> deliver() && { return link<T>::deliver(std::move(results_)); }

 private:
  owner<link<T>> results_;
  async_generator<T> items_;
};

// Stops the paths of a split when the generator that takes their results ends, or when the next
// stage stops.
class paths_stop {
 public:
  explicit paths_stop(const open_context& run)
      : on_stop_(run.stop, close_on_stop<paths_stop>{*this}) {}

  const std::stop_source& source() const noexcept { return stop_; }
  std::stop_token token() const noexcept { return stop_.get_token(); }
  void close() noexcept { request_stop(stop_); }

 private:
  std::stop_source stop_;
  std::stop_callback<close_on_stop<paths_stop>> on_stop_;
};

}  // namespace lade::detail
