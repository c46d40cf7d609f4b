// trace: a file that shows when which stage worked on which item.

#pragma once

#include <lade/lineage.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace lade {

namespace detail {
class item_arrows;
}

// Writes a file in the Trace Event Format (a JSON array), which ui.perfetto.dev and
// chrome://tracing open. A run with this trace adds:
// - a span for every call of the function of a map, filter, batch_into, pad, pack, batch_by or
//   flat_map; in flat_map, for each part and for the end,
// - a span for the time in which the consumer has an item,
// - a track for each item that a worker has in flight,
// - arrows that follow each item from its first span to its last,
// - a curve of the items held, for each stage with workers, prefetch, route and merge by arrival,
// - a curve of the items that are ready for the consumer,
// - each system call, from its start until its result is there.
//
// The program may add spans:
//
//   lade::trace trace("run.trace.json");
//   auto batches = runtime.run(pipeline, {.trace = &trace});
//   for (auto& batch : batches) {
//     auto step = trace.span("train");
//     train(batch);
//   }
//
// The trace must outlive its runs. Any thread. A span takes a lock while a line of text is written.
class trace {
 public:
  using clock = std::chrono::steady_clock;
  class open_span;

  // Throws error with the system's reason if the file cannot be opened for writing.
  explicit trace(const std::string& path);

  // Completes the file. Later events are lost. A file that is incomplete after a crash can be
  // opened too. Throws error with the system's reason if an event could not be written. Such a
  // failure does not end a run. Events after the first failure are not in the file.
  void finish();

  // Calls finish(), and writes its exception to standard error.
  ~trace();

  // A span from now until the object is destroyed, on the track of this thread.
  [[nodiscard]] open_span span(std::string name);

  // For stages. A track is a row of spans that do not overlap. `item`: lineage of the item of the
  // span.
  using track = std::uint64_t;
  track add_track(std::string_view name);
  void add_span(track where, std::string_view name, clock::time_point start, clock::time_point end,
                const lineage& item = {});

  // Records a number, or several that are stacked, as a curve. A value holds until the next one.
  using level = std::pair<const char*, std::uint64_t>;
  void add_levels(std::string_view name, std::initializer_list<level> levels);

  // A span of a system operation, which may overlap others. `what`: its object; may be empty.
  void add_io(std::string_view name, std::string_view what, clock::time_point start,
              clock::time_point end, std::int64_t result);

 private:
  friend class detail::item_arrows;

  std::string arrow_event(char phase, std::uint64_t arrow, track where,
                          clock::time_point start) const;
  std::string microseconds(clock::time_point time) const;
  void write(const std::string& event);

  // Call these with the mutex held.
  void put(std::string_view text);
  void record_failure() noexcept;

  const std::string path_;
  const clock::time_point start_ = clock::now();
  struct output;

  std::mutex mutex_;
  const std::unique_ptr<output> file_;
  int failure_ = 0;  // errno of the first failed write; 0: none
  track tracks_ = 0;
  std::atomic<std::uint64_t> arrows_ = 0;
  std::atomic<std::uint64_t> calls_ = 0;  // system operations so far
};

class trace::open_span {
 public:
  open_span(trace& to, std::string name)
      : trace_(&to), name_(std::move(name)), start_(clock::now()) {}
  open_span(open_span&& other) noexcept
      : trace_(std::exchange(other.trace_, nullptr)),
        name_(std::move(other.name_)),
        start_(other.start_) {}
  open_span& operator=(open_span&&) = delete;
  ~open_span();

 private:
  trace* trace_;
  std::string name_;
  clock::time_point start_;
};

namespace detail {

// The arrows of one run. Each follows an item from its first span over all others to its last. An
// item with one span has no arrow. The last step of each item is known and written when the run has
// ended. Any thread.
class item_arrows {
 public:
  explicit item_arrows(trace* to);
  item_arrows(const item_arrows&) = delete;
  ~item_arrows();

  // Records that a span with `item` begins. Does nothing without a trace.
  void step(const lineage& item, trace::track where, trace::clock::time_point start) {
    if (trace_) add_steps(item, where, start);
  }

  // Call it when the run has ended. May be called again.
  void finish();

 private:
  struct steps;

  void add_steps(const lineage& item, trace::track where, trace::clock::time_point start);

  trace* trace_;
  std::mutex mutex_;
  const std::unique_ptr<steps> last_;  // null without a trace
};

// Traces the consumer of a run: from each delivery until it asks for the next item. Does nothing
// without a trace.
class consumer_trace {
 public:
  explicit consumer_trace(trace* to) : trace_(to), track_(to ? to->add_track("consumer") : 0) {}

  // `rest`: the items that are ready behind `item`.
  template <class Queue>
  void given(const lineage& item, item_arrows& arrows, const Queue& rest) {
    if (!trace_) return;
    trace_->add_levels("consumer", {{"ready", rest.size()}});
    item_ = item;
    since_ = trace::clock::now();
    arrows.step(item, track_, since_);
  }
  void asked() {
    if (!trace_ || item_.empty()) return;
    trace_->add_span(track_, "consumer", since_, trace::clock::now(), std::exchange(item_, {}));
  }
  // The run ends while the consumer has an item. The span is lost if there is no memory for it.
  void ended() noexcept {
    try {
      asked();
    } catch (...) {}
  }

 private:
  trace* trace_;
  trace::track track_;
  lineage item_;
  trace::clock::time_point since_;
};

}  // namespace detail

inline trace::open_span trace::span(std::string name) { return {*this, std::move(name)}; }

}  // namespace lade
