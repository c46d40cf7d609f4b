#include <lade/detail/common/json.hpp>
#include <lade/error.hpp>
#include <lade/trace.hpp>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <utility>
#include <vector>

#include <unistd.h>

namespace lade {

// Tracks of stages, so that they differ from threads, which have tracks by their number.
static constexpr trace::track first_track = 1 << 24;

// An event: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
static std::string trace_event(char phase, trace::track where, const std::string& more) {
  return std::string(",\n{\"ph\":\"") + phase + "\",\"pid\":1,\"tid\":" + std::to_string(where) +
         "," + more + "}";
}

trace::trace(const std::string& path) : path_(path), file_(path) {
  if (!file_) raise(errno, "open " + path);
  file_ << "[\n" << R"({"ph":"M","pid":1,"name":"process_name","args":{"name":"lade"}})";
}

void trace::finish() {
  std::lock_guard lock(mutex_);
  if (!file_.is_open()) return;
  put("\n]\n");
  file_.close();
  note_failure();
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
  write(trace_event('M', added,
                    "\"name\":\"thread_name\",\"args\":{\"name\":" + detail::json_of(name) + "}"));
  return added;
}

void trace::add_span(track where, std::string_view name, clock::time_point start,
                     clock::time_point end, const lineage& item) {
  write(trace_event('X', where,
                    "\"ts\":" + microseconds(start) +
                        ",\"dur\":" + microseconds(start_ + (end - start)) +
                        ",\"name\":" + detail::json_of(name) + ",\"args\":{\"positions\":\"" +
                        to_string(item) + "\"}"));
}

// Bound to the span that is around its time.
std::string trace::arrow_event(char phase, std::uint64_t arrow, track where,
                               clock::time_point start) const {
  return trace_event(phase, where,
                     "\"ts\":" + microseconds(start) +
                         R"(,"cat":"item","name":"item","bp":"e","id":)" + std::to_string(arrow));
}

void trace::add_levels(std::string_view name, std::initializer_list<level> levels) {
  std::vector<std::pair<const char*, std::string>> values;
  for (auto& [what, value] : levels) values.emplace_back(what, std::to_string(value));
  write(trace_event('C', 0,
                    "\"ts\":" + microseconds(clock::now()) + ",\"name\":" + detail::json_of(name) +
                        ",\"args\":" + detail::json_object(values)));
}

void trace::add_io(std::string_view name, std::string_view what, clock::time_point start,
                   clock::time_point end, std::int64_t result) {
  auto same =
      R"(,"cat":"io","id":)" + std::to_string(calls_++) + ",\"name\":" + detail::json_of(name);
  auto about =
      ",\"args\":{\"of\":" + detail::json_of(what) + ",\"result\":" + std::to_string(result) + "}";
  write(trace_event('b', 0, "\"ts\":" + microseconds(start) + same + about) +
        trace_event('e', 0, "\"ts\":" + microseconds(end) + same));
}

std::string trace::microseconds(clock::time_point time) const {
  return detail::json_of(std::chrono::duration<double, std::micro>(time - start_).count(), 3);
}

void trace::write(const std::string& event) {
  std::lock_guard lock(mutex_);
  if (file_.is_open()) put(event);
}

// After the first failure nothing is written: the file would not be read beyond it.
void trace::put(std::string_view text) {
  if (failure_ != 0) return;
  file_ << text;
  note_failure();
}

void trace::note_failure() noexcept {
  if (!file_ && failure_ == 0) failure_ = errno != 0 ? errno : EIO;
}

trace::open_span::~open_span() {
  if (trace_) trace_->add_span(static_cast<track>(gettid()), name_, start_, clock::now());
}

namespace detail {

item_arrows::~item_arrows() {
  try {
    finish();
  } catch (const std::exception&) {}  // a trace that has no memory for a line goes on without it
}

void item_arrows::add_steps(const lineage& item, trace::track where,
                            trace::clock::time_point start) {
  std::string text;
  {
    std::lock_guard lock(mutex_);
    for (auto& range : item.ranges())
      for (auto position = range.first; position <= range.last; ++position) {
        auto [known, is_first] = last_.try_emplace(position, last_step{where, start});
        if (is_first) continue;
        auto& last = known->second;
        auto phase = last.arrow == none ? 's' : 't';
        auto arrow = last.arrow == none ? ++trace_->arrows_ : last.arrow;
        text += trace_->arrow_event(phase, arrow, last.where, last.start);
        last = {where, start, arrow};
      }
  }
  if (!text.empty()) trace_->write(text);
}

void item_arrows::finish() {
  std::string text;
  {
    std::lock_guard lock(mutex_);
    for (auto& [position, last] : std::exchange(last_, {}))
      if (last.arrow != none) text += trace_->arrow_event('f', last.arrow, last.where, last.start);
  }
  if (!text.empty()) trace_->write(text);
}

}  // namespace detail
}  // namespace lade
