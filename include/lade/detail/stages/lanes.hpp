// The way out of paths whose results are taken in turn: tee, route_batches.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/channel.hpp>
#include <lade/context.hpp>
#include <lade/detail/coroutines/owner.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/path_place.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/stages/split.hpp>
#include <lade/stats.hpp>
#include <lade/task.hpp>
#include <lade/this_context.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

namespace lade::detail {

// What stops the paths of one run: the end of the generator that takes their results, or a stop of
// the stage behind.
class lane_stop {
 public:
  explicit lane_stop(const open_context& run)
      : on_stop_(run.stop, close_on_stop<lane_stop>{*this}) {}

  const std::stop_source& source() const noexcept { return stop_; }
  std::stop_token token() const noexcept { return stop_.get_token(); }
  void close() noexcept { request_stop(stop_); }

 private:
  std::stop_source stop_;
  std::stop_callback<close_on_stop<lane_stop>> on_stop_;
};

// The results of one path, which a coroutine of its own has ready.
template <class T>
class lane : public std::enable_shared_from_this<lane<T>> {
 public:
  // Opens the path. `run` is the context of its end, with its path.
  lane(const open_context& run, const pipeline<T>& path)
      : run_(run),
        path_(path.open(run)),
        results_(run.path->split->buffer()),
        surroundings_(run.run->surroundings(run.stop)) {
    surroundings_.place = run_.path.get();
  }

  // Starts it. `end` is kept until the path has ended.
  void start(stage_counters& counters, std::shared_ptr<const void> end) {
    work_for(counters, surroundings_);
    auto work = pump(*this, std::move(*path_), std::move(end));
    path_.reset();
    run_.run->start(this->shared_from_this(), surroundings_, std::move(work));
  }

  // The results, with what the path throws. Ends early when the paths wait for each other.
  static async_generator<T> deliver(std::shared_ptr<lane> self) {
    while (auto next = co_await self->next()) {
      with_lineage<T> yielded{next->origin, next->item};
      co_yield yielded;
    }
    if (self->failure_ && !self->run_.path->split->stuck()) std::rethrow_exception(self->failure_);
  }

 private:
  using ready = underway_item<T>;

  task<std::optional<ready>> next() {
    stopwatch waiting(surroundings_.stage->starving);
    auto& where = *run_.path;
    where.split->note_awaited(where.path);
    auto next = co_await results_.pop();
    where.split->note_taken(where.path);
    co_return next;
  }

  static task<> pump(lane& self, async_generator<T> path, std::shared_ptr<const void>) {
    try {
      while (auto* item = co_await path.next()) {
        ready next(std::move(*item), path.origin(), self.run_.path.get());
        self.run_.path->split->note_made(self.run_.path->path);
        co_await self.results_.push(std::move(next));
      }
    } catch (...) {
      self.failure_ = std::current_exception();
    }
    self.results_.close();
  }

  const open_context run_;
  std::optional<async_generator<T>> path_;  // until it is started
  channel<ready> results_;
  std::exception_ptr failure_;  // before the results are closed
  context surroundings_;
};

}  // namespace lade::detail
