#include <lade/buffer_pool.hpp>
#include <lade/continue_on.hpp>
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

// The file is opened on the thread that reads it.
struct demuxer::state {
  std::unique_ptr<thread_pool> thread;  // null for a file in memory
  blocking_input* slow = nullptr;       // the input of `file`; null for a file in memory
  std::unique_ptr<format_reader> file;
  std::atomic<bool> busy = false;
  std::vector<packet> held;          // read by stream(), not yet yielded, in file order
  bool was_read_separately = false;  // since stream() read: the file's position is elsewhere
};

// Marks the demuxer as used by one coroutine.
class demuxer_use {
 public:
  demuxer_use(std::atomic<bool>& busy, const std::string& name) : busy_(busy) {
    if (busy_.exchange(true))
      throw error(errc::wrong_thread, "read " + name, "another call or generator uses the demuxer");
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
    auto& current = co_await this_context_reference();
    if (current.runtime == nullptr) throw error(errc::no_runtime, "read a media file");
    slow->set_context(current);
    co_await continue_on(*thread);
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

// Opens the file on the demuxer's thread. The caller keeps the state, so that it is not destroyed
// on that thread.
template <class State>
static task<> open_slowly(State& state, std::shared_ptr<const byte_reader> from,
                          demux_options options) {
  auto& current = co_await this_context_reference();
  auto input = std::make_unique<blocking_input>(from);
  state.slow = input.get();
  state.thread =
      std::make_unique<thread_pool>(thread_pool_options{.threads = 1, .name = "lade-demux"});
  const std::function<void()> make = [&] {
    state.file =
        std::make_unique<format_reader>(std::move(input), from->name(), options, current.stop);
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
static constexpr std::size_t step_bytes = std::size_t{1} << 16;

template <class State>
static task<packets> read_window(std::shared_ptr<State> kept, int stream, time_window window) {
  auto& current = co_await this_context_reference();
  const demuxer_use use(kept->busy, kept->file->name());
  kept->file->set_stop(current.stop);
  window_reader reader(*kept->file, stream, window);
  kept->held.clear();
  kept->was_read_separately = true;
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

// Copies the state before the coroutine starts: until then, the demuxer may be moved.
task<packets> demuxer::read(int stream, time_window window) {
  return read_window(state_, stream, window);
}

// Collects packets of several streams until one stream has an element. Other packets stay in `held`
// for the next collector.
class packet_collector {
 public:
  packet_collector(format_reader& file, std::vector<int> streams,
                   const packet_stream_options& options, std::vector<packet>& held)
      : file_(file), streams_(std::move(streams)), options_(options), held_(held) {
    for (const int each : streams_) parts_.emplace_back(file.stream(each));
    std::erase_if(held_, [&](const packet& each) { return place_of(each) == streams_.size(); });
  }

  // Reads until an element is complete. Returns false at the end.
  bool read() {
    file_.select(streams_);
    while (!ended_) {
      if (examined_ == held_.size() && !read_packet()) break;
      const auto i = place_of(held_[examined_]);
      if (is_behind(parts_[i], held_[examined_])) return choose(i);
      add(parts_[i], held_[examined_++]);
      if (parts_[i].packets == options_.packets) return choose(i);
    }
    ended_ = true;
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (parts_[i].packets > 0) return choose(i);
    return false;
  }

  // The size of the element; the element, which is removed from `held`.
  std::size_t bytes() const noexcept { return parts_[chosen_].bytes; }

  packets take() {
    std::vector<packet> element;
    std::vector<packet> others;
    element.reserve(parts_[chosen_].packets);
    for (std::size_t i = 0; i < held_.size(); ++i) {
      const bool is_of_it = i < examined_ && place_of(held_[i]) == chosen_;
      (is_of_it ? element : others).push_back(std::move(held_[i]));
    }
    held_ = std::move(others);
    examined_ -= element.size();
    auto info = parts_[chosen_].info;
    parts_[chosen_] = part(info);
    return packets(std::move(info), std::move(element));
  }

 private:
  // The packets of a stream among the examined ones.
  struct part {
    explicit part(stream_info stream) : info(std::move(stream)) {}

    stream_info info;
    std::size_t packets = 0;
    std::size_t bytes = 0;
    std::int64_t first = AV_NOPTS_VALUE;  // order_of the first one
  };

  std::size_t place_of(const packet& packet) const {
    const auto found = std::find(streams_.begin(), streams_.end(), packet.get().stream_index);
    return static_cast<std::size_t>(found - streams_.begin());
  }

  bool read_packet() {
    auto next = file_.read();
    if (next) held_.emplace_back(std::move(next));
    return examined_ < held_.size();
  }

  bool choose(std::size_t i) {
    chosen_ = i;
    return true;
  }

  static void add(part& to, const packet& next) {
    if (to.packets++ == 0) to.first = order_of(next.get());
    to.bytes += memory_of(next.get());
  }

  // Whether the packet is after the duration of an element.
  bool is_behind(const part& candidate, const packet& next) const {
    if (!options_.duration || candidate.packets == 0) return false;
    const auto stamp = order_of(next.get());
    if (candidate.first == AV_NOPTS_VALUE || stamp == AV_NOPTS_VALUE) return true;
    return (rational(stamp) - rational(candidate.first)) * candidate.info.time_base() >=
           *options_.duration;
  }

  // Matroska does not state decoding times.
  static std::int64_t order_of(const AVPacket& packet) noexcept {
    return packet.dts != AV_NOPTS_VALUE ? packet.dts : packet.pts;
  }

  format_reader& file_;
  std::vector<int> streams_;
  packet_stream_options options_;
  std::vector<packet>& held_;
  std::size_t examined_ = 0;  // of the held packets
  std::vector<part> parts_;   // by stream
  std::size_t chosen_ = 0;    // the stream of the element
  bool ended_ = false;
};

static void check_streams(const format_reader& file, std::vector<int> streams,
                          const packet_stream_options& options) {
  const auto refuse = [&](const char* reason) {
    throw error(errc::invalid_argument, file.doing("stream packets of"), reason);
  };
  if (options.packets == 0 || (options.duration && *options.duration <= 0))
    refuse("packets and duration must be above 0");
  if (streams.empty()) refuse("no stream is named");
  for (const int each : streams) (void)file.stream(each);
  std::sort(streams.begin(), streams.end());
  if (std::adjacent_find(streams.begin(), streams.end()) != streams.end())
    refuse("a stream is named twice");
}

template <class State>
static async_generator<packets> stream_packets(std::shared_ptr<State> kept,
                                               std::vector<int> streams,
                                               packet_stream_options options) {
  const demuxer_use use(kept->busy, kept->file->name());
  if (kept->was_read_separately) kept->held.clear();
  packet_collector collector(*kept->file, std::move(streams), options, kept->held);
  bool found = false;
  const std::function<void()> read = [&] {
    if (kept->was_read_separately) kept->file->rewind();
    kept->was_read_separately = true;  // if this fails, the next call starts again
    found = collector.read();
    kept->was_read_separately = false;
  };
  while (true) {
    auto& current = co_await this_context_reference();
    kept->file->set_stop(current.stop);
    co_await call_on(kept->thread.get(), kept->slow, read);
    if (!found) co_return;
    auto charged = co_await charge(collector.bytes());
    auto element = collector.take();
    element.attach(std::move(charged));
    co_yield std::move(element);
  }
}

async_generator<packets> demuxer::stream(std::vector<int> streams, packet_stream_options options) {
  check_streams(*state_->file, streams, options);
  return stream_packets(state_, std::move(streams), options);
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
