// split: the fan-out of items to the paths of a stage, such as route and tee.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/context.hpp>
#include <lade/detail/coroutines/mutex.hpp>
#include <lade/detail/coroutines/owner.hpp>
#include <lade/detail/coroutines/waiter.hpp>
#include <lade/detail/data/item_bytes.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/path_place.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/stages/link.hpp>
#include <lade/error.hpp>
#include <lade/pipeline.hpp>
#include <lade/task.hpp>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <tuple>
#include <utility>
#include <vector>

namespace lade::detail {

// Tracks the waits of a stage with paths: its input waits for capacity, its paths for items, its
// output for a result of a path.
//
// If the output takes results of the paths in turn, these waits can form a cycle. A path that needs
// more items per result than another asks for one more when the other has filled its result queue.
// Such a standstill is the moment when all three hold:
//
// - the output waits for a result of a path
// - that path waits for an item, and has nothing in flight
// - the input waits, because another path has as many results as its queue holds
//
// Results leave only in turn, so none of these waits can end. At any other moment at least one
// coroutine can proceed: a path with fewer results takes the items before it.
//
// Lock: mutex_ guards all waits and counts. Each wait is recorded under it, and look() then tests
// all three conditions under it. So the wait that completes a standstill finds it; look() stops the
// paths.
class split_base : public std::enable_shared_from_this<split_base> {
 public:
  // Arguments of capacity() instead of a path: capacity before all paths; capacity for one more
  // batch.
  static constexpr std::size_t all_paths = ~std::size_t{0};
  static constexpr std::size_t batches = all_paths - 1;

  // Instead of a path: the item is dropped.
  static constexpr std::size_t dropped = all_paths - 2;

  // For distributor::waits_for: nothing is waited for before an item is taken. The item then waits
  // for capacity before its path.
  static constexpr std::size_t chosen_path = all_paths - 3;

  // `buffer`: how many items may wait before each path and results behind it, or how many batches
  // may be in flight. 0 counts as 1. `bytes`: a limit in bytes of the items and of the results; the
  // next one counts as the largest one so far, and one is always allowed.
  split_base(std::size_t paths, std::size_t buffer, std::uint64_t bytes = unlimited_bytes)
      : branches_(paths), buffer_(at_least_one(buffer)), bytes_(bytes) {}
  split_base(const split_base&) = delete;
  ~split_base();

  std::size_t buffer() const noexcept { return buffer_; }
  std::uint64_t bytes() const noexcept { return bytes_; }

  // The most items that the fan-out holds: the items that wait before the paths, and one item that
  // each path has taken.
  // - held_in_step(): every item goes to all paths.
  // - held_apart(): each item goes to one path. At worst, one path has filled the capacity of all
  //   paths, and then every other path fills its own buffer.
  static std::uint64_t held_in_step(std::size_t paths, std::size_t buffer) noexcept {
    return std::uint64_t{paths} * (at_least_one(buffer) + 1);
  }
  static std::uint64_t held_apart(std::size_t paths, std::size_t buffer) noexcept {
    return std::uint64_t{2 * paths - 1} * at_least_one(buffer) + paths;
  }

  // The capacity of a buffer with this option.
  static std::size_t at_least_one(std::size_t buffer) noexcept { return buffer ? buffer : 1; }

  // Sets the stage whose statistics show the waits of the input and, with carries_results links
  // behind the paths, how many results wait. Must be called before the paths and the input start.
  void count_for(stage_counters& counters) noexcept {
    counters_ = &counters;
    if (watching_) counters.depth.begin(this);
  }

  // Enables the tracking: a standstill stops `paths`, and the demand for another item is known.
  // `run`: the context of the stage itself.
  void watch(const open_context& run, std::stop_source paths);

  // The demand that the input serves. Requires watch().
  std::shared_ptr<const demand> wanted() const noexcept { return demand_; }

  // The place of a path in the graph. `around`: the path that contains the stage.
  static std::shared_ptr<const path_place> path(std::shared_ptr<split_base> split,
                                                std::size_t number,
                                                std::shared_ptr<const path_place> around = {}) {
    return std::make_shared<const path_place>(std::move(split), number, std::move(around));
  }

  bool is_watching() const noexcept { return watching_; }

  // The paths of a standstill.
  struct standstill {
    std::size_t awaited;  // the path whose result the output waits for
    std::size_t full;     // a path with a full result queue; meaningless for batches
  };
  std::optional<standstill> stuck() const;

  // The path has made a result; the output waits for a result or batch; that wait has ended.
  // `bytes`: of the result, if there is a limit.
  void record_made(std::size_t path, std::uint64_t bytes);
  void record_awaited(std::size_t path);
  void record_taken(std::size_t path, std::uint64_t bytes = 0);
  // An item or child becomes in flight in the path, or no longer is: see in_flight_mark.
  void enter(std::size_t path, in_flight_mark::kind is = in_flight_mark::kind::item) noexcept;
  void leave(std::size_t path, in_flight_mark::kind is = in_flight_mark::kind::item) noexcept;

  // leave(old) and enter(by) in one step, for a caller that holds the mutex of a stage in the path.
  // The caller must call look() after it has released that mutex.
  void replace(std::size_t path, std::optional<in_flight_mark::kind> old,
               std::optional<in_flight_mark::kind> by);

  // The wait of the input for an item of the stage before, from construction to destruction.
  class asking;

  // For the input: `co_await capacity(where)` suspends until one more item fits, or the path needs
  // no more; not at all for chosen_path. The await returns true, as drain() requires. If the other
  // paths are empty, one path may hold as many items as all together, within its limit in bytes.
  // Throws error(stopped) if the awaiting coroutine is asked to stop. has_capacity(): whether the
  // await would end at once.
  class capacity_awaiter;
  [[nodiscard]] capacity_awaiter capacity(std::size_t where) noexcept;
  bool has_capacity(std::size_t where) const;

  void begin_batch();
  void end_batch();

  // Ends the input. `failure`: its exception, which readers rethrow; null at the regular end.
  void end_input(std::exception_ptr failure);
  void rethrow_failure() const;

 protected:
  struct branch {
    bool opened = false;
    bool ended = false;        // it needs no more items
    std::size_t waiting = 0;   // items that wait before the path
    std::size_t results = 0;   // results that wait behind it
    std::size_t items = 0;     // items in flight in it
    std::size_t children = 0;  // live children of scopes in it
    waiting_bytes before;      // of the items that wait
    waiting_bytes behind;      // of the results that wait
    wait_list consumer;        // waits for an item

    std::size_t& count(in_flight_mark::kind is) noexcept {
      return is == in_flight_mark::kind::item ? items : children;
    }
  };

  // Opens the fan-out into a path, whose beginning is at `begin`, of the stage `at`. Throws
  // error(invalid_argument) if the path is open already, since it would take its items twice, or if
  // it contains a cache.
  void open(std::size_t path, const planned_node& at, const planned_node& begin);
  // Records that the path needs no more items, not even the items that wait before it. Returns
  // whether this is true for all paths.
  bool end_path(std::size_t path);

  // Must be called when a consumer has parked, without the mutex. Resumes the input if there is
  // capacity: it may have stayed suspended, to be resumed once for many items.
  void begin_consumer_wait();

  // Looks for a standstill and updates the demand. Must be called whenever a wait has started, or a
  // path or the input has ended, without the mutex.
  void look();

  // For the destructor of a derived class: no result waits any more.
  void clear_depth() noexcept;

  // Called with the mutex held.
  bool fits(std::size_t where) const;
  void wake_input(wait_list& woken);
  bool needs_another() const;
  bool is_awaited_in_vain() const;
  void record_given(std::size_t path) noexcept;

  mutable mutex mutex_;
  std::vector<branch> branches_;
  bool over_ = false;

 private:
  void record_asking(bool asks);
  void record_blocked(bool blocked) noexcept;
  void record_depth() noexcept;
  bool is_full(const branch& path) const;
  bool holds_bytes_for_one(const branch& path) const;
  bool has_enough(const branch& path) const;
  std::size_t waiting_in_all() const;

  stage_counters* counters_ = nullptr;
  std::exception_ptr failure_;
  const std::size_t buffer_;
  const std::uint64_t bytes_;
  std::size_t results_ = 0;    // results that wait behind all paths
  std::size_t in_flight_ = 0;  // batches in flight
  wait_list input_;            // the input, if it waits for capacity
  std::size_t wanted_ = 0;     // path that it waits for, all_paths or batches
  bool asking_ = false;        // the input waits for the stage before
  std::optional<std::size_t> awaited_;
  std::optional<standstill> stuck_;
  bool watching_ = false;
  std::shared_ptr<const path_place> around_;  // keeps where_ alive
  const path_place* where_ = nullptr;         // watched path that contains this stage; null: none
  // The mark of this stage in the path where_: `item` while it has work, `child` while only
  // children have, none while it waits for the stage before.
  std::optional<in_flight_mark::kind> mark_;
  std::shared_ptr<demand> demand_;  // null unless watched
  buffer_pool* memory_ = nullptr;
  std::stop_source paths_{std::nostopstate};
};

class split_base::asking {
 public:
  explicit asking(split_base& split) : split_(split) { split_.record_asking(true); }
  asking(const asking&) = delete;
  ~asking() { split_.record_asking(false); }

 private:
  split_base& split_;
};

class split_base::capacity_awaiter : private waiter {
 public:
  capacity_awaiter(split_base& split, std::size_t where) noexcept : split_(split), where_(where) {}
  bool await_ready() const noexcept { return where_ == chosen_path; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> input) {
    auto self = split_.shared_from_this();  // the input may resume, and end, at once
    bool parked = park(input, self->mutex_, self->input_, [this, &self] {
      self->wanted_ = where_;
      if (self->over_ || self->fits(where_)) return true;
      begin_wait();
      return false;
    });
    if (parked) self->look();
    return parked;
  }
  bool await_resume() {
    end_wait();
    finish("wait for capacity in a path");
    return true;
  }

 private:
  // A wait may begin twice: see waiter::park().
  void begin_wait() noexcept {
    if (!std::exchange(waits_, true)) split_.record_blocked(true);
  }
  void end_wait() noexcept {
    if (std::exchange(waits_, false)) split_.record_blocked(false);
  }

  split_base& split_;
  std::size_t where_;
  bool waits_ = false;
};

inline split_base::capacity_awaiter split_base::capacity(std::size_t where) noexcept {
  return capacity_awaiter(*this, where);
}

// How a stage passes the items of its input to the paths. For the coroutine of the input alone.
// `item`: the address of an item. `origin`: its lineage.
class distributor {
 public:
  struct choice {
    std::size_t path = split_base::dropped;
    std::optional<task<std::size_t>> later = {};  // if set: returns the path, instead of `path`
  };

  // `where`: what must have capacity before the next item is taken, as for split_base::capacity().
  // chosen_path: the item is taken first, and then waits for capacity before its path.
  explicit distributor(std::size_t where) noexcept : waits_for(where) {}
  virtual ~distributor() = default;

  const std::size_t waits_for;

  // Throws if the run ends. The item and the lineage are valid until give() returns, or until
  // `later` has ended if the item is dropped.
  virtual choice choose(void* item, const lineage& origin) = 0;

  // Moves the item to the chosen path. `origin` includes the items dropped before.
  virtual void give(std::size_t path, void* item, lineage origin) = 0;

  // fail(): the input has failed; called before end_input() of the split. end(): the input of the
  // split has ended or failed; called after end_input().
  virtual void fail() noexcept {}
  virtual void end() noexcept {}
};

// The coroutine of the input: drains `in` into the paths. Ends the input of the split with the
// failure of `in` or `how`, if any. Ends when `stop` is requested.
task<> distribute(split_base& to, run_state& run, std::stop_token stop, generator in,
                  std::unique_ptr<distributor> how);

// The queues before the paths of one run. All paths must be opened before the input starts.
template <class T>
class split : public split_base {
 public:
  // `measure`: measures items; null without a limit in bytes.
  split(const open_context& run, std::size_t paths, std::size_t buffer,
        std::uint64_t bytes = unlimited_bytes, measure_item measure = nullptr)
      : split_base(paths, buffer, bytes),
        run_(run),
        measure_(measure),
        on_stop_(run.stop, close_on_stop<split>{*this}) {
    for (std::size_t path = 0; path < paths; ++path)
      queues_.push_back(std::make_unique<std::deque<given>>());
  }
  ~split() { this->clear_depth(); }

  // The stop token of the input.
  std::stop_token stop_token() const noexcept { return stop_.get_token(); }

  // Starts the coroutine that takes the items of `in`.
  void start(async_generator<T> in, std::unique_ptr<distributor> how, stage_counters& counters) {
    context_ = run_.run->make_context(stop_.get_token());
    work_for(counters, context_);
    if (wanted()) context_.claim = &claim_.emplace(wanted());
    run_.run->children().start(
        shared_from_this(), context_,
        distribute(*this, *run_.run, stop_.get_token(), std::move(in), std::move(how)));
  }

  // For the input. Queues the item for a path. Returns false, and drops the item, if the path needs
  // no more.
  bool give(std::size_t path, T item, lineage origin);

  // Yields the items of a path; `path_opening` is a context inside that path. Destroying the
  // generator ends the path.
  static async_generator<T> branch(const open_context& path_opening, std::size_t path) {
    auto self = std::static_pointer_cast<split>(path_opening.path->split);
    self->open(path, *self->run_.at, *path_opening.at);
    return deliver(reader(std::move(self), path));
  }

  // Ends the path when the last copy of the result is destroyed, even if it never took items.
  static std::shared_ptr<const void> end_of(std::shared_ptr<split> self, std::size_t path) {
    return std::make_shared<const reader>(std::move(self), path);
  }

  void close() noexcept;

 private:
  class take_awaiter;

  struct given : in_flight_item<T> {  // a queued item
    given(T value, lineage positions, const path_place* place, measure_item measure)
        : in_flight_item<T>(std::move(value), std::move(positions), place),
          bytes(measure ? measure(std::addressof(this->item)) : 0) {}
    std::uint64_t bytes;
  };

  class reader {
   public:
    reader(std::shared_ptr<split> from, std::size_t path) noexcept
        : from_(std::move(from)), path_(path) {}
    reader(reader&&) noexcept = default;
    ~reader() {
      if (from_ && from_->end(path_)) from_->close();
    }
    take_awaiter take() const noexcept { return take_awaiter(*from_, path_); }
    void rethrow_failure() const {
      from_->rethrow_failure();
      if (from_->stop_.stop_requested()) throw error(errc::stopped, "take items of a path");
    }

   private:
    std::shared_ptr<split> from_;
    std::size_t path_;
  };

  static async_generator<T> deliver(reader self) {
    while (auto next = co_await self.take()) {
      with_lineage<T> yielded{next->origin, next->item};
      co_yield yielded;
    }
    self.rethrow_failure();
  }

  // Ends the path and drops the items that wait before it. Returns whether all paths have ended.
  bool end(std::size_t path) {
    const bool last = end_path(path);
    std::unique_ptr<std::deque<given>> queued;  // destroyed without the mutex
    std::lock_guard lock(mutex_);
    queued = std::move(queues_[path]);
    return last;
  }

  // Called with the mutex held.
  bool provide(std::size_t path, std::optional<given>& into, wait_list& woken);

  const open_context run_;
  const measure_item measure_;
  std::vector<std::unique_ptr<std::deque<given>>> queues_;  // null: the path has ended
  std::stop_source stop_;
  std::optional<memory_claim> claim_;  // claim of the input to the memory budget, if it is watched
  context context_;
  stop_callback<close_on_stop<split>> on_stop_;
};

template <class T>
class split<T>::take_awaiter : private waiter {
 public:
  take_awaiter(split& from, std::size_t path) noexcept : split_(from), path_(path) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    auto& from = split_;
    auto alive = from.shared_from_this();  // the coroutine may resume and end this
    wait_list woken;
    bool parked = park(coroutine, from.mutex_, from.branches_[path_].consumer,
                       [&] { return from.provide(path_, value_, woken) || from.over_; });
    woken.resume_all();
    if (parked) from.begin_consumer_wait();
    return parked;
  }
  std::optional<given> await_resume() {
    finish("take items of a path");
    return std::move(value_);
  }

 private:
  friend class split;

  split& split_;
  std::size_t path_;
  std::optional<given> value_;
};

template <class T>
bool split<T>::give(std::size_t path, T item, lineage origin) {
  given next(std::move(item), std::move(origin), run_.path.get(), measure_);
  listed_waiter* consumer = nullptr;
  {
    std::lock_guard lock(mutex_);
    auto& to = branches_[path];
    if (to.ended) return false;
    to.before.add(next.bytes);
    if (auto* first = to.consumer.first()) {
      to.before.remove(next.bytes);  // it does not wait, but its size is known
      static_cast<take_awaiter*>(first)->value_.emplace(std::move(next));  // may throw
      consumer = to.consumer.settle_first();
      record_given(path);
    } else {
      queues_[path]->push_back(std::move(next));
      ++to.waiting;
    }
  }
  if (consumer) consumer->resume();
  return true;
}

template <class T>
bool split<T>::provide(std::size_t path, std::optional<given>& into, wait_list& woken) {
  auto* queue = queues_[path].get();
  if (!queue || queue->empty()) return false;
  into.emplace(std::move(queue->front()));
  queue->pop_front();
  --branches_[path].waiting;
  branches_[path].before.remove(into->bytes);
  wake_input(woken);
  return true;
}

template <class T>
void split<T>::close() noexcept {
  request_stop(stop_);
  end_input(nullptr);
}

// The stages of a path, attached to the items that the split yields to it.
template <class T, class Path>
auto attach_path(const Path& path, std::size_t number, node_facts begin) {
  auto branch = make_pipeline<T>(std::move(begin), [number](const open_context& run) {
    return split<T>::branch(run, number);
  });
  static_assert(
      accepts<pipeline<T>, Path>,
      "lade: a path must be a stage, such as lade::map(function), that takes items of this type");
  return path.attach(branch);
}

// A pipeline for each path, which takes `size` items if that is known. The numbers of its stages
// follow those of the path before, so that no two stages draw the same random numbers.
template <class T, class... Paths>
auto attach_paths(const std::tuple<Paths...>& paths, const pipeline<T>& in,
                  std::optional<std::uint64_t> size) {
  std::size_t number = 0;
  auto length = in.last()->facts().number();
  auto next = [&](const auto& path) {
    auto attached =
        attach_path<T>(path, number++, node_facts::path_of(in.last(), length + 1, size));
    length = attached.last()->facts().number();
    return pipeline<typename decltype(attached)::value_type>(attached);
  };
  return std::apply(
      [&](const Paths&... each) { return std::tuple<decltype(next(each))...>{next(each)...}; },
      paths);
}

// A path of a tee or a route_batches that is open but not started.
template <class T>
class opened_path {
 public:
  // `inside`: the context that all paths share. `measure`: measures results; null without a limit
  // in bytes.
  opened_path(const open_context& inside, const std::shared_ptr<split_base>& split,
              std::size_t number, const pipeline<T>& stages, measure_item measure = nullptr)
      : opened_path(inside.in(split_base::path(split, number)), options(*split, measure), stages) {}

  // Starts the path. `end` is kept alive until the path has ended.
  void start(stage_counters& counters, std::shared_ptr<const void> end) {
    results_->count_for(counters);
    results_->start(std::move(items_), std::move(end));
  }

  async_generator<T> deliver() && { return deliver_from<T>(std::move(results_)); }

 private:
  static link_options options(const split_base& split, measure_item measure) {
    auto results = link_options::results(split.buffer());
    results.limit(split.bytes(), measure);
    return results;
  }

  opened_path(const open_context& path, const link_options& results, const pipeline<T>& stages)
      : results_(std::make_shared<link<T>>(path, results)),
        items_(stages.open(results_->before(path))) {}

  owner<link_base> results_;
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
