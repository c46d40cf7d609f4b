#include <lade/error.hpp>
#include <lade/support/json.hpp>
#include <lade/trace.hpp>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/compile.h>
#include <fmt/format.h>
#include <unistd.h>

namespace lade {

// Tracks of stages have numbers from here on. Tracks of threads have the thread ID as their number.
static constexpr trace::track first_track = 1 << 24;

// An event of the Trace Event Format:
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
// A call has several events, so their formats are compiled.
static std::string trace_event(char phase, trace::track where, std::string_view more) {
  return fmt::format(FMT_COMPILE(",\n{{\"ph\":\"{}\",\"pid\":1,\"tid\":{},{}}}"), phase, where,
                     more);
}

struct trace::output {
  std::ofstream file;  // closed: the trace is finished
};

trace::trace(const std::string& path)
    : path_(path), file_(std::make_unique<output>(output{std::ofstream(path)})) {
  if (!file_->file) raise(errno, "open " + path);
  file_->file << "[\n" << R"({"ph":"M","pid":1,"name":"process_name","args":{"name":"lade"}})";
}

void trace::finish() {
  std::lock_guard lock(mutex_);
  if (!file_->file.is_open()) return;
  put("\n]\n");
  file_->file.close();
  record_failure();
  if (failure_ != 0) raise(failure_, "write " + path_);
}

trace::~trace() {
  try {
    finish();
  } catch (const error& failure) {
    std::fprintf(stderr, "lade: %s\n", failure.what());
  }
}

trace::track trace::add_track(std::string_view name) {
  track added = 0;
  {
    std::lock_guard lock(mutex_);
    added = first_track + tracks_++;
  }
  write(trace_event(
      'M', added,
      fmt::format(R"("name":"thread_name","args":{{"name":{}}})", support::json_of(name))));
  return added;
}

void trace::add_span(track where, std::string_view name, clock::time_point start,
                     clock::time_point end, const lineage& item) {
  write(trace_event(
      'X', where,
      fmt::format(FMT_COMPILE(R"("ts":{},"dur":{},"name":{},"args":{{"positions":"{}"}})"),
                  microseconds(start), microseconds(start_ + (end - start)), support::json_of(name),
                  to_string(item))));
}

// The binding point "e" attaches the arrow to the span that contains its time.
std::string trace::arrow_event(char phase, std::uint64_t arrow, track where,
                               clock::time_point start) const {
  return trace_event(
      phase, where,
      fmt::format(FMT_COMPILE(R"("ts":{},"cat":"item","name":"item","bp":"e","id":{})"),
                  microseconds(start), arrow));
}

void trace::add_levels(std::string_view name, std::initializer_list<level> levels) {
  std::vector<std::pair<const char*, std::string>> values;
  for (auto& [what, value] : levels) values.emplace_back(what, std::to_string(value));
  write(trace_event(
      'C', 0,
      fmt::format(FMT_COMPILE(R"("ts":{},"name":{},"args":{})"), microseconds(clock::now()),
                  support::json_of(name), support::json_object(values))));
}

void trace::add_io(std::string_view name, std::string_view what, clock::time_point start,
                   clock::time_point end, std::int64_t result) {
  auto same = fmt::format(R"(,"cat":"io","id":{},"name":{})", calls_++, support::json_of(name));
  auto about = fmt::format(R"(,"args":{{"of":{},"result":{}}})", support::json_of(what), result);
  write(trace_event('b', 0, "\"ts\":" + microseconds(start) + same + about) +
        trace_event('e', 0, "\"ts\":" + microseconds(end) + same));
}

std::string trace::microseconds(clock::time_point time) const {
  const auto elapsed = std::chrono::nanoseconds(time - start_).count();
  return fmt::format(FMT_COMPILE("{}{}.{:03}"), elapsed < 0 ? "-" : "", std::abs(elapsed) / 1000,
                     std::abs(elapsed) % 1000);
}

void trace::write(const std::string& event) {
  std::lock_guard lock(mutex_);
  if (file_->file.is_open()) put(event);
}

// After the first failure, writes nothing: a reader would not parse the rest of the file.
void trace::put(std::string_view text) {
  if (failure_ != 0) return;
  file_->file << text;
  record_failure();
}

void trace::record_failure() noexcept {
  if (!file_->file && failure_ == 0) failure_ = errno != 0 ? errno : EIO;
}

trace::open_span::~open_span() {
  if (trace_) trace_->add_span(static_cast<track>(gettid()), name_, start_, clock::now());
}

namespace detail {

// The last step of the item at each position.
struct item_arrows::steps {
  static constexpr std::uint64_t none = 0;

  struct step {
    trace::track where;
    trace::clock::time_point start;
    std::uint64_t arrow = none;  // the arrow that leads to the step
  };

  std::unordered_map<std::uint64_t, step> of_positions;
};

item_arrows::item_arrows(trace* to) : trace_(to), last_(to ? std::make_unique<steps>() : nullptr) {}

item_arrows::~item_arrows() {
  try {
    finish();
  } catch (const std::exception&) {}  // without memory, the trace lacks the last arrows
}

void item_arrows::add_steps(const lineage& item, trace::track where,
                            trace::clock::time_point start) {
  std::string text;
  {
    std::lock_guard lock(mutex_);
    for (auto& range : item.ranges())
      for (auto position = range.first; position <= range.last; ++position) {
        auto [known, is_first] =
            last_->of_positions.try_emplace(position, steps::step{where, start});
        if (is_first) continue;
        auto& last = known->second;
        auto phase = last.arrow == steps::none ? 's' : 't';
        auto arrow = last.arrow == steps::none ? ++trace_->arrows_ : last.arrow;
        text += trace_->arrow_event(phase, arrow, last.where, last.start);
        last = {where, start, arrow};
      }
  }
  if (!text.empty()) trace_->write(text);
}

void item_arrows::finish() {
  if (!last_) return;
  std::string text;
  {
    std::lock_guard lock(mutex_);
    for (auto& [position, last] : std::exchange(last_->of_positions, {}))
      if (last.arrow != steps::none)
        text += trace_->arrow_event('f', last.arrow, last.where, last.start);
  }
  if (!text.empty()) trace_->write(text);
}

}  // namespace detail
}  // namespace lade
