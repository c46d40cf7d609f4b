// link: a bounded queue between coroutines of a run.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/autotune.hpp>
#include <lade/context.hpp>
#include <lade/detail/coroutines/owner.hpp>
#include <lade/detail/data/item_bytes.hpp>
#include <lade/detail/memory/demand.hpp>
#include <lade/detail/observability/overview.hpp>
#include <lade/detail/observability/stage_counters.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/open_context.hpp>
#include <lade/detail/pipeline/path_place.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/pipeline/stage_key.hpp>
#include <lade/detail/pipeline/tuned_stages.hpp>
#include <lade/detail/stages/slot_ring.hpp>
#include <lade/lineage.hpp>
#include <lade/task.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace lade::detail {

struct link_options {
  slot_ring_options ring;
  std::size_t ends_after = 1;  // inputs that must end before the link does; 0: no inputs

  // Whether the link stops its inputs when it closes. If not, the consumer's stop must do so.
  bool stops_inputs = true;

  // Whether the link counts the input and output items of the stage.
  bool counts_items = false;

  // Whether the statistics count the time in which all live inputs are waited for (input_wait).
  bool measures_inputs = false;

  // Whether items in the link are marked as in flight in the path that contains it. Not if the
  // items are branches, whose own items have marks.
  bool marks_items = true;

  // Whether a stall report lists the items in the link, and a trace their number.
  bool is_reported = false;
  bool is_traced = true;

  // Whether the link delivers, without an item, the lineage of items that an input has consumed and
  // not yielded by its end.
  bool delivers_rest = false;

  // Whether the link carries the results of the path that contains it, for a tee or a
  // route_batches, which takes them in turn. The split then accounts for the results and the
  // demand.
  bool carries_results = false;

  // Measures results, for the limit in bytes of the ring; null without that limit.
  measure_item measure = nullptr;

  // Whether the link is the output queue of the run. The memory that its next item needs is
  // estimated as the mean of the bytes that all stages have allocated for an item.
  bool is_output = false;

  // Sets a limit in bytes; see slot_ring_options::bytes. `measure_with`: null without a limit.
  void limit(std::uint64_t bytes, measure_item measure_with) noexcept {
    ring.bytes = bytes;
    measure = measure_with;
  }

  // The options of a queue of up to `queued` items from one input, for a separate stage.
  static link_options ahead(std::size_t queued) {
    return {.ring = {.slots = queued,
                     .waits_for_memory = true,
                     .measures_feeders = true,
                     .measures_depth = true},
            .counts_items = true,
            .measures_inputs = true,
            .is_reported = true};
  }

  // The options of a queue of up to `queued` items from several inputs. Each input may hold one
  // item more, so that one that waits does not stop the others.
  static link_options gathering(std::size_t queued, std::size_t inputs) {
    return {.ring = {.slots = queued + inputs,
                     .feeders = inputs,
                     .refills = inputs > 1 ? refill::at_half : refill::at_quarter},
            .ends_after = inputs};
  }

  // The options of the queue behind a path of a tee or a route_batches. Its drain is woken as soon
  // as a slot is free: so while it waits, the split sees that `queued` results wait.
  static link_options results(std::size_t queued) {
    auto options = gathering(queued, 1);
    options.ring.refills = refill::at_once;
    options.carries_results = true;
    options.is_traced = false;
    return options;
  }
};

// A bounded queue of items in slots, with a coroutine for each input, which drains a generator into
// it. All stages with dedicated coroutines are made of it: prefetch, map (with workers between the
// inputs and the queue), flat_map, merge, route, tee, and the output queue of a run. slot_ring says
// how the coroutines pass slots on.
//
//   generator ─ drain ─╮
//   generator ─ drain ─┼─> [ slots ] ─ deliver() ─> next stage
//   generator ─ drain ─╯
//
// - Ownership: the generator of deliver() owns the link. Destroying it closes the link. Each drain
//   keeps the link alive until it has ended.
// - Blocking: a drain suspends while no slot is free, deliver() while no item is done.
// - End: when `ends_after` inputs have ended, or as soon as one has failed (see expect_failure()).
//   Items in the queue are still delivered; then the first failure is rethrown. After close() they
//   are not delivered; they are dropped with the link.
// - Bytes: the queue may also be limited in bytes; see slot_ring_options::bytes.
// - Lock: mutex_ guards the numbers of inputs and the first failure. The coroutine that took a
//   slot from the ring accesses its slot_record, and its reported_item; the mutex of the ring
//   orders successive owners. Reports read the origin and the reported_item under that mutex.
// - Memory: the link's demand makes the item that the consumer waits for urgent.
//
// This base does not depend on the type of the items, which a derived class holds.
class link_base : public std::enable_shared_from_this<link_base> {
 public:
  link_base(const open_context& run, const link_options& options)
      : link_base(run.run, options, std::make_shared<demand>(run.wanted), run.path, run.stop) {}

  // `wanted`: the demand of the consumer. `path`: the path that contains the link. The link closes
  // when a stop of `consumer` is requested.
  link_base(std::shared_ptr<run_state> run, const link_options& options,
            std::shared_ptr<demand> wanted, std::shared_ptr<const path_place> path,
            std::stop_token consumer);
  virtual ~link_base() = default;

  // The context to open the inputs with: the link stops them, and they serve its demand.
  open_context before(const open_context& run) const;

  // Sets the stage whose statistics the link and its inputs add to. Must be called before start().
  void count_for(stage_counters& counters);

  // Has the run adjust the capacity, and the number of workers, while the link works. Must be
  // called at most once, after count_for().
  void tune(const stage_key& key, const tuner& begin);

  // Has the inputs run on another executor than the CPU pool. Must be called before start().
  void compute_on(executor& home) noexcept { context_.home = &home; }

  // For a link without workers whose stage is tuned itself: see slot_ring::bound().
  void bound(std::size_t working, std::size_t held) noexcept { ring_.bound(working, held); }

  class sink;

  // Starts the drain of an input. `keep_alive` is released when the input has ended.
  void start(generator input, std::shared_ptr<const void> keep_alive = nullptr);

  // Starts another drain, whose sink puts what it makes of the items into the link by a
  // link_base::sink.
  void start(task<> drain);

  // Starts the drain of an input in another context, a copy of input_context(). The owner of that
  // context must keep the link alive.
  void start_in(std::shared_ptr<const context> execution, generator input);
  const context& input_context() const noexcept { return context_; }

  // Puts the items of `input` into the queue until the input or the link has ended. For a coroutine
  // that calls end_input() itself.
  task<> fill_from(generator input);

  // The link ends after one input more.
  void expect_input() noexcept;

  // Records the end of one input. Failures after the end of the link are ignored.
  void end_input(std::exception_ptr failure) noexcept;

  // Announces that the upstream has failed, so that all inputs will report the same failure. The
  // link then ends only when all inputs have ended, so that items which they still hold are
  // delivered.
  void expect_failure() noexcept;

  // Yields the items.
  static generator deliver(owner<link_base> self);

  // The demand of the consumer.
  const std::shared_ptr<demand>& wanted() const noexcept { return ring_.wanted(); }

  std::stop_token stop_token() const noexcept { return stop_.get_token(); }
  bool is_stopped() const noexcept { return stop_.stop_requested(); }
  std::exception_ptr failure() const;

  // Any thread.
  void close() noexcept;

 protected:
  // The record of the item in a slot.
  struct slot_record {
    lineage origin;
    std::exception_ptr failure;  // ends the run when the item is delivered
  };

  // Moves an item into a slot. Without workers, it is the result.
  virtual void put(std::size_t slot, void* item, const lineage& origin) = 0;
  virtual std::string name_of_item(const void* item) const = 0;

  // The result in a slot; null if there is none. count_result() counts it as passed on.
  virtual void* result(std::size_t slot) noexcept = 0;
  virtual void count_result(std::size_t slot) = 0;
  virtual void drop_result(std::size_t slot) noexcept = 0;

  // Adds the numbers of items to the trace. Requires a trace.
  virtual void trace_levels() const;

  stage_counters& counters() const noexcept { return *counters_; }
  slot_record& record(std::size_t slot) noexcept { return records_[slot]; }

  // Must be called once for a result, before its slot is passed on.
  void measure_result(std::size_t slot, const void* made) noexcept {
    if (options_.measure) ring_.record_bytes(slot, options_.measure(made));
  }

  // Records the state of the item in a slot for reports.
  void note(std::size_t slot, item_overview::doing what, clock::time_point now) noexcept {
    if (!reported_.empty()) reported_[slot].note(what, now);
  }
  void record_levels() const {
    if (trace_ && options_.is_traced) trace_levels();
  }

  const std::shared_ptr<run_state> run_;
  slot_ring ring_;
  std::stop_source stop_;
  context context_;  // of the inputs

 private:
  // The report entry of the item in a slot.
  struct reported_item {
    std::string name;
    std::atomic<item_overview::doing> doing = item_overview::doing::waits_for_worker;
    std::atomic<clock::time_point> since = clock::time_point();

    void note(item_overview::doing what, clock::time_point now) noexcept;
  };

  // The interface for reports. Not the link itself: they must not call a virtual function of an
  // object whose derived part is still being constructed.
  class report final : private overviewed {
   public:
    explicit report(const link_base& reported);
    report(const report&) = delete;
    ~report() override;

   private:
    std::string overview(clock::time_point at) const override;

    const link_base& link_;
  };

  // The interface for the tuning. Not the link itself, for the same reason.
  class tuning final : private tunable {
   public:
    tuning(link_base& tuned, const stage_key& key, const tuner& begin);
    tuning(const tuning&) = delete;
    ~tuning();

   private:
    std::size_t slots_at(const tuner::setting& now) const noexcept override;
    void set(const tuner::setting& now) override;

    link_base& link_;
  };

  void fill(std::size_t slot, void* item, const lineage& origin);
  void report_waiting(std::size_t slot, const void* item);
  void mark(std::size_t slot) noexcept {
    if (!marks_.empty()) marks_[slot] = in_flight_mark(path_.get());
  }
  void unmark(std::size_t slot) noexcept {
    if (!marks_.empty()) marks_[slot] = {};
  }
  void count_in() noexcept;
  void estimate_memory() noexcept;
  bool measures_inputs() const noexcept { return options_.measures_inputs && counters_; }
  bool has_one_input() const noexcept { return options_.ring.feeders == 1; }
  void begin_input_wait() noexcept;
  void end_input_wait() noexcept;
  void fill_with_rest(std::size_t slot, const lineage& rest);
  void begin_wait();
  void end_wait(std::size_t taken);
  bool is_at_standstill() const;

  const link_options options_;
  trace* const trace_;
  stage_counters* counters_ = nullptr;
  const std::shared_ptr<const path_place> path_;  // must outlive marks_
  std::vector<slot_record> records_;
  std::vector<in_flight_mark> marks_;    // of the items in slots; empty if none are marked
  std::vector<reported_item> reported_;  // of the items in slots; empty without reports
  std::uint64_t filled_ = 0;             // items of an output queue; accessed by its only drain
  memory_claim claim_;
  mutable std::mutex mutex_;  // guards the members below, up to failure_
  std::size_t live_;          // inputs that must end before the link does
  std::size_t inputs_;        // live inputs
  std::size_t awaited_ = 0;   // live inputs that are waited for, if several are measured
  bool patient_ = false;      // whether a failed input does not end the link: expect_failure()
  std::exception_ptr failure_;
  std::stop_callback<close_on_stop<link_base>> on_consumer_stop_;
  std::optional<report> report_;
  std::optional<tuning> tuning_;
};

// Puts the items of one input into the slots of a link: a sink for drain(), whose coroutine is a
// feeder of the ring. It owns a slot from capacity() to the next capacity(), and passes it on then,
// or at the end.
class link_base::sink {
 public:
  explicit sink(link_base& to, std::shared_ptr<const void> keep_alive = nullptr) noexcept
      : link_(to), kept_(std::move(keep_alive)) {}
  sink(sink&& other) noexcept
      : link_(other.link_),
        kept_(std::move(other.kept_)),
        slot_(std::exchange(other.slot_, slot_ring::none)),
        filled_(other.filled_) {}
  sink& operator=(sink&&) = delete;
  ~sink() { pass_on(); }

  class capacity_awaiter;
  [[nodiscard]] capacity_awaiter capacity() noexcept;

  class input_wait {
   public:
    explicit input_wait(sink& of) noexcept : link_(of.link_) { link_.begin_input_wait(); }
    input_wait(const input_wait&) = delete;
    ~input_wait() { link_.end_input_wait(); }

   private:
    link_base& link_;
  };

  std::optional<task<>> put(void* item, const lineage& origin);
  void put_rest(const lineage& origin);
  void end(std::exception_ptr failure) noexcept;

  // Passes on the filled slot, or returns the free one.
  void pass_on() noexcept;

 private:
  link_base& link_;
  std::shared_ptr<const void> kept_;
  std::size_t slot_ = slot_ring::none;  // the slot that the coroutine owns
  bool filled_ = false;                 // whether an item is in it
};

class link_base::sink::capacity_awaiter : public slot_ring::free_awaiter {
 public:
  explicit capacity_awaiter(sink& of) noexcept
      : slot_ring::free_awaiter(of.link_.ring_, std::exchange(of.slot_, slot_ring::none)),
        sink_(of) {}
  bool await_resume() const noexcept {
    sink_.slot_ = slot_ring::free_awaiter::await_resume();
    sink_.filled_ = false;
    return sink_.slot_ != slot_ring::none;
  }

 private:
  sink& sink_;
};

inline link_base::sink::capacity_awaiter link_base::sink::capacity() noexcept {
  return capacity_awaiter(*this);
}

// A link without workers.
template <class T>
class link final : public link_base {
 public:
  link(const open_context& run, const link_options& options)
      : link_base(run, options), items_(options.ring.slots) {}
  link(const open_context& run, const link_options& options, std::shared_ptr<demand> wanted)
      : link_base(run.run, options, std::move(wanted), run.path, run.stop),
        items_(options.ring.slots) {}
  link(std::shared_ptr<run_state> run, const link_options& options, std::shared_ptr<demand> wanted)
      : link_base(std::move(run), options, std::move(wanted), nullptr, {}),
        items_(options.ring.slots) {}

  // For a consumer that takes the items itself, instead of deliver(). take_first_slot(), take():
  // see take_first_slot() and take_done_or_stop() of slot_ring. The consumer must drop the result
  // in a slot before it passes the slot on.
  std::size_t take_first_slot() noexcept { return ring_.take_first_slot(); }
  [[nodiscard]] auto take(std::size_t freed) noexcept { return ring_.take_done_or_stop(freed); }
  T& item(std::size_t slot) noexcept { return *items_[slot]; }
  lineage& origin(std::size_t slot) noexcept { return record(slot).origin; }
  void drop_result(std::size_t slot) noexcept override { items_[slot].reset(); }

  // Items that are ready to be taken.
  std::size_t size() const { return ring_.count().done; }

 private:
  void put(std::size_t slot, void* item, const lineage&) override {
    items_[slot].emplace(std::move(*static_cast<T*>(item)));
  }
  std::string name_of_item(const void* item) const override {
    return name_of(*static_cast<const T*>(item));
  }
  void* result(std::size_t slot) noexcept override {
    auto& item = items_[slot];
    return item ? std::addressof(*item) : nullptr;
  }
  void count_result(std::size_t slot) override { count_out(counters(), *items_[slot]); }

  std::vector<std::optional<T>> items_;
};

// Yields the items of a link.
template <class T>
async_generator<T> deliver_from(owner<link_base> stage) {
  return async_generator<T>(link_base::deliver(std::move(stage)));
}

}  // namespace lade::detail
