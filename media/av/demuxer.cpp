#include <lade/buffer_pool.hpp>
#include <lade/detail/continue_on.hpp>
#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/runtime.hpp>
#include <lade/this_context.hpp>
#include <lade/thread_pool.hpp>

#include "format_reader.hpp"
#include "stream_fields.hpp"
#include "window_reader.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <list>
#include <string>
#include <utility>

namespace lade::media {

// The file is made on the thread that reads it.
struct demuxer::state {
  std::unique_ptr<thread_pool> thread;  // null for a file in memory
  blocking_input* slow = nullptr;       // the input of `file`; null for a file in memory
  std::unique_ptr<format_reader> file;
  std::atomic<bool> busy = false;
};

// Held by the one coroutine that uses a demuxer.
class demuxer_use {
 public:
  demuxer_use(std::atomic<bool>& busy, const std::string& name) : busy_(busy) {
    if (busy_.exchange(true))
      throw error(errc::wrong_thread, "read " + name, "another coroutine uses the demuxer");
  }
  demuxer_use(const demuxer_use&) = delete;
  demuxer_use& operator=(const demuxer_use&) = delete;
  ~demuxer_use() { busy_ = false; }

 private:
  std::atomic<bool>& busy_;
};

// Calls `work`, which may block, on the demuxer's thread if it has one. References must outlive
// the await.
static task<> call_on(thread_pool* thread, blocking_input* slow,
                      const std::function<void()>& work) {
  if (thread != nullptr) {
    auto& here = co_await detail::this_context_reference();
    if (here.runtime == nullptr) throw error(errc::no_runtime, "read a media file");
    slow->set_context(here);
    co_await detail::continue_on(*thread);
  }
  work();
}

demuxer::demuxer(buffer file, std::string name, const demux_options& options)
    : state_(std::make_shared<state>()) {
  state_->file = std::make_unique<format_reader>(std::make_unique<memory_input>(std::move(file)),
                                                 std::move(name), options);
}
demuxer::demuxer(demuxer&&) noexcept = default;
demuxer& demuxer::operator=(demuxer&&) noexcept = default;
demuxer::~demuxer() = default;

// On the opened demuxer's own thread. The caller keeps the state, so that it is not destroyed on
// that thread.
template <class State>
static task<> open_slowly(State& state, std::shared_ptr<const byte_reader> from,
                          demux_options options) {
  auto& here = co_await detail::this_context_reference();
  auto input = std::make_unique<blocking_input>(from);
  state.slow = input.get();
  state.thread =
      std::make_unique<thread_pool>(thread_pool_options{.threads = 1, .name = "lade-demux"});
  const std::function<void()> make = [&] {
    state.file =
        std::make_unique<format_reader>(std::move(input), from->name(), options, here.stop);
  };
  co_await call_on(state.thread.get(), state.slow, make);
}

task<demuxer> demuxer::open(std::shared_ptr<const byte_reader> from, demux_options options) {
  if (!from) throw error(errc::invalid_argument, "open a media file", "the reader is null");
  if (from->is_in_memory()) {
    auto content = co_await from->read_at(0, static_cast<std::size_t>(from->size()));
    co_return demuxer(std::move(content), from->name(), options);
  }
  auto opened = std::make_shared<state>();
  co_await open_slowly(*opened, std::move(from), options);
  co_return demuxer(std::move(opened));
}

task<demuxer> demuxer::open(std::string path, demux_options options) {
  auto from = co_await io::open_reader(std::move(path));
  co_return co_await open(std::move(from), options);
}

const std::string& demuxer::name() const noexcept { return state_->file->name(); }
std::string_view demuxer::format() const noexcept { return state_->file->context().iformat->name; }
const std::vector<stream_info>& demuxer::streams() const noexcept {
  return state_->file->streams();
}
std::uint64_t demuxer::damaged() const noexcept { return state_->file->damaged(); }
std::uint64_t demuxer::bytes_read() const noexcept { return state_->file->input().bytes_read(); }

metadata demuxer::metadata() const { return metadata_of(state_->file->context().metadata); }

std::optional<rational> demuxer::duration() const noexcept {
  const auto stated = state_->file->context().duration;
  if (stated <= 0 || state_->file->estimates_duration()) return std::nullopt;
  return time_of(stated, rational(1, AV_TIME_BASE));
}

const stream_info* demuxer::find_best(stream_kind kind) const {
  return best_stream(*state_->file, kind);
}

const stream_info& demuxer::best(stream_kind kind) const {
  return require_stream(*state_->file, kind);
}

// Packets are charged to the budget before they are read, this many bytes at a time.
static constexpr std::size_t step_bytes = std::size_t{1} << 20;

task<packets> demuxer::read(int stream, time_window window) {
  auto& here = co_await detail::this_context_reference();
  const auto kept = state_;
  const demuxer_use use(kept->busy, name());
  kept->file->set_stop(here.stop);
  window_reader reader(*kept->file, stream, window);
  std::list<memory_charge> charges;
  bool more = true;
  const std::function<void()> step = [&] { more = reader.step(step_bytes); };
  while (more) {
    auto charged = co_await charge(step_bytes);
    charges.push_back(std::move(charged));
    co_await call_on(kept->thread.get(), kept->slow, step);
  }
  auto result = std::move(reader).take();
  const auto bytes = result.memory_bytes();
  if (const auto charged_bytes = charges.size() * step_bytes; bytes > charged_bytes) {
    auto charged = co_await charge(bytes - charged_bytes);
    charges.push_back(std::move(charged));
  }
  for (auto& each : charges) result.attach(std::move(each));
  co_return result;
}

// Collects packets of several streams until those of one are an element.
class packet_collector {
 public:
  packet_collector(format_reader& file, std::vector<int> streams,
                   const packet_stream_options& options)
      : file_(file), streams_(std::move(streams)), options_(options), held_(streams_.size()) {
    for (const int each : streams_) info_.push_back(file.stream(each));
    file_.select(streams_);
  }

  // The next element; empty at the end.
  std::optional<packets> next() {
    while (!ended_) {
      auto read = file_.read();
      if (!read) break;
      const auto found = std::find(streams_.begin(), streams_.end(), read->stream_index);
      const auto i = static_cast<std::size_t>(found - streams_.begin());
      auto element = is_behind(i, *read) ? take(i) : std::nullopt;
      held_[i].emplace_back(std::move(read));
      if (!element && held_[i].size() == options_.packets) element = take(i);
      if (element) return element;
    }
    ended_ = true;
    for (std::size_t i = 0; i < held_.size(); ++i)
      if (!held_[i].empty()) return take(i);
    return std::nullopt;
  }

 private:
  // Whether the packet is behind the duration of an element.
  bool is_behind(std::size_t i, const AVPacket& next) const {
    if (!options_.duration || held_[i].empty()) return false;
    const auto first = order_of(held_[i].front().get());
    const auto stamp = order_of(next);
    if (first == AV_NOPTS_VALUE || stamp == AV_NOPTS_VALUE) return false;
    return (rational(stamp) - rational(first)) * info_[i].time_base() >= *options_.duration;
  }

  // Matroska does not state decoding times.
  static std::int64_t order_of(const AVPacket& of) noexcept {
    return of.dts != AV_NOPTS_VALUE ? of.dts : of.pts;
  }

  std::optional<packets> take(std::size_t i) {
    return packets(info_[i], std::exchange(held_[i], {}));
  }

  format_reader& file_;
  std::vector<int> streams_;
  std::vector<stream_info> info_;
  packet_stream_options options_;
  std::vector<std::vector<packet>> held_;  // of each stream, not yet yielded
  bool ended_ = false;
};

static void check_stream_options(const packet_stream_options& options) {
  if (options.packets == 0 || (options.duration && *options.duration <= 0))
    throw error(errc::invalid_argument, "stream packets", "packets and duration must be above 0");
}

async_generator<packets> demuxer::stream(std::vector<int> streams, packet_stream_options options) {
  check_stream_options(options);
  const auto kept = state_;
  const demuxer_use use(kept->busy, kept->file->name());
  packet_collector collector(*kept->file, std::move(streams), options);
  std::optional<packets> element;
  const std::function<void()> next = [&] { element = collector.next(); };
  while (true) {
    auto& here = co_await detail::this_context_reference();
    kept->file->set_stop(here.stop);
    co_await call_on(kept->thread.get(), kept->slow, next);
    if (!element) co_return;
    const auto bytes = element->memory_bytes();
    auto charged = co_await charge(bytes);
    element->attach(std::move(charged));
    co_yield std::move(*element);
  }
}

async_generator<packets> demuxer::stream(int stream, packet_stream_options options) {
  return this->stream(std::vector<int>{stream}, options);
}

packets demux(const buffer& file, std::string_view name, stream_kind kind,
              const time_window& window, const demux_options& options) {
  format_reader opened(std::make_unique<memory_input>(file), std::string(name), options);
  window_reader reader(opened, require_stream(opened, kind).index(), window);
  std::list<memory_charge> charges;
  do {
    charges.emplace_back(step_bytes);
  } while (reader.step(step_bytes));
  auto result = std::move(reader).take();
  charges.clear();
  result.attach(memory_charge(result.memory_bytes()));
  return result;
}

}  // namespace lade::media
