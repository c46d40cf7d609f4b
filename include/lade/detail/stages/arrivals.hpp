// Items of several generators as they come.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/channel.hpp>
#include <lade/detail/coroutines/owner.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/run_state.hpp>
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

// Inputs that work beside each other, each with a coroutine of its own.
template <class T>
class arrivals : public std::enable_shared_from_this<arrivals<T>> {
 public:
  // Ends when so many of the inputs have ended.
  arrivals(const open_context& run, std::size_t inputs, std::size_t ends_after)
      : run_(run),
        slots_(2 * inputs),
        items_(slots_),
        live_(ends_after),
        wanted_(std::make_shared<demand>(run.wanted)),
        claim_(wanted_),
        surroundings_(run.run->surroundings(stop_.get_token())),
        on_consumer_stop_(run.stop, close_on_stop<arrivals>{*this}) {
    surroundings_.claim = &claim_;
    surroundings_.place = run_.path.get();
    if (inputs == 0) items_.close();
  }

  // What the inputs are stopped by, and the demand that they serve.
  std::stop_token stop_token() const noexcept { return stop_.get_token(); }
  std::shared_ptr<const demand> wanted() const noexcept { return wanted_; }

  // Whose statistics this and the inputs add to. Before the first is started.
  void count_for(stage_counters& counters) {
    work_for(counters, surroundings_);
    run_.run->note_workers(counters, {.slots = slots_, .gathers = true});
  }

  // `end` is kept until the input has ended.
  void start(async_generator<T> input, std::shared_ptr<const void> end = nullptr) {
    run_.run->start(this->shared_from_this(), surroundings_,
                    pump(*this, std::move(input), std::move(end)));
  }

  // All inputs are about to fail alike, by what feeds them: what each has before that still comes.
  // Otherwise the first failure ends all.
  void expect_failure() noexcept {
    std::lock_guard lock(mutex_);
    patient_ = true;
  }

  // The items of all inputs. Destroying the generator ends them.
  static async_generator<T> deliver(owner<arrivals> self) {
    while (auto next = co_await self->next()) {
      with_lineage<T> yielded{next->origin, next->item};
      co_yield yielded;
    }
    if (self->stop_.stop_requested()) throw error(errc::stopped, self->surroundings_.stage->name());
    if (auto failure = self->failure()) std::rethrow_exception(failure);
  }

  void close() noexcept {
    request_stop(stop_);
    items_.close();
  }

 private:
  using arrived = underway_item<T>;

  task<std::optional<arrived>> next() {
    stopwatch waiting(surroundings_.stage->starving);
    if (items_.size() == 0) {
      wanted_->await(demand::next);
      surroundings_.memory->reconsider();
    }
    auto next = co_await items_.pop();
    wanted_->await(demand::none);
    co_return next;
  }

  static task<> pump(arrivals& self, async_generator<T> input, std::shared_ptr<const void>) {
    try {
      while (auto* item = co_await input.next()) {
        arrived next(std::move(*item), input.origin(), self.run_.path.get());
        self.wanted_->await(demand::none);  // what is waited for has come
        co_await self.items_.push(std::move(next));
        self.note_level();
      }
      self.end(nullptr);
    } catch (...) {
      self.end(std::current_exception());
    }
  }

  void note_level() const {
    if (auto* trace = run_.run->options().trace)
      trace->add_levels(surroundings_.stage->name(), {{"done", items_.size()}});
  }

  // One input has ended. What the others throw after the end of all is of no interest.
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
  const std::size_t slots_;
  channel<arrived> items_;
  std::stop_source stop_;
  mutable std::mutex mutex_;
  std::size_t live_;  // inputs that must end before all does
  bool patient_ = false;
  std::exception_ptr failure_;
  const std::shared_ptr<demand> wanted_;
  memory_claim claim_;
  context surroundings_;
  std::stop_callback<close_on_stop<arrivals>> on_consumer_stop_;
};

}  // namespace lade::detail
