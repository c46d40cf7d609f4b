// A record of what ran when, for a person to look at.

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

// Writes a file in the Trace Event Format (JSON array), which ui.perfetto.dev and chrome://tracing
// open. Runs that are given it add a span for every call of the function of a map, filter,
// batch_into, pad, pack, batch_by or flat_map (of that for each part, and for the end), and for
// what the consumer does with each item, one track for each item that a worker has in hand, arrows
// that follow each item from its first span to its last, a curve of what each stage with workers,
// prefetch, a route and a merge by arrival hold and of what is ready for the consumer, and each
// system call from when it is made until its result is there; the program may add spans of its own:
//
//   lade::trace trace("run.trace.json");
//   auto batches = runtime.run(pipeline, {.trace = &trace});
//   for (auto& batch : batches) {
//     auto step = trace.span("train");
//     train(batch);
//   }
//
// Must outlive the runs that it is given to. A span takes a lock for a line of text. Any thread.
class trace {
 public:
  using clock = std::chrono::steady_clock;
  class open_span;

  // Throws error with the system's reason if the file cannot be written.
  explicit trace(const std::string& path);

  // Completes the file; what comes then is lost. One that is not completed, after a crash, can be
  // opened too. Throws error with the system's reason if not all could be written: a run does not
  // end for that, and what came after the first failure is not in the file.
  void finish();

  // The same, but what finish() would throw goes to standard error.
  ~trace();

  // From now to the end of the object, on the track of this thread.
  [[nodiscard]] open_span span(std::string name);

  // For stages. A track is a line of spans that do not overlap; `item` is what a span worked on.
  using track = std::uint64_t;
  track add_track(std::string_view name);
  void add_span(track where, std::string_view name, clock::time_point start, clock::time_point end,
                const lineage& item = {});

  // How many there are of something from now on: a curve, or several that are stacked.
  using level = std::pair<const char*, std::uint64_t>;
  void add_levels(std::string_view name, std::initializer_list<level> levels);

  // A span that may overlap others, of something that the system did. `what` may be empty.
  void add_io(std::string_view name, std::string_view what, clock::time_point start,
              clock::time_point end, std::int64_t result);

 private:
  friend class detail::item_arrows;

  std::string arrow_event(char phase, std::uint64_t arrow, track where,
                          clock::time_point start) const;
  std::string microseconds(clock::time_point time) const;
  void write(const std::string& event);

  // With the mutex held.
  void put(std::string_view text);
  void note_failure() noexcept;

  const std::string path_;
  const clock::time_point start_ = clock::now();
  struct output;

  std::mutex mutex_;
  const std::unique_ptr<output> file_;
  int failure_ = 0;  // why it could not be written, an errno
  track tracks_ = 0;
  std::atomic<std::uint64_t> arrows_ = 0;
  std::atomic<std::uint64_t> calls_ = 0;  // of the system
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

// The arrows of one run: each follows an item from the first span that works on it, over all
// others, to the last. Which that is, is known when the run has ended: the last step is written
// then. An item with one span has no arrow. Any thread.
class item_arrows {
 public:
  explicit item_arrows(trace* to);
  item_arrows(const item_arrows&) = delete;
  ~item_arrows();

  // A span begins that works on `item`. Nothing without a trace.
  void step(const lineage& item, trace::track where, trace::clock::time_point start) {
    if (trace_) add_steps(item, where, start);
  }

  // The run has ended. May be called again.
  void finish();

 private:
  struct steps;

  void add_steps(const lineage& item, trace::track where, trace::clock::time_point start);

  trace* trace_;
  std::mutex mutex_;
  const std::unique_ptr<steps> last_;  // null without a trace
};

// What the consumer of a run does with each item: from when it has been given until it asks for the
// next. Does nothing without a trace.
class consumer_trace {
 public:
  explicit consumer_trace(trace* to) : trace_(to), track_(to ? to->add_track("consumer") : 0) {}

  // The items of `rest` are ready behind it.
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
  // With an item in hand, whose span is missing if there is no memory for it.
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
