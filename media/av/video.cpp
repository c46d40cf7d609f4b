#include <lade/continue_on.hpp>
#include <lade/error.hpp>
#include <lade/io/ranges.hpp>
#include <lade/media/av/video.hpp>
#include <lade/runtime.hpp>
#include <lade/stop_requested.hpp>
#include <lade/this_context.hpp>

#include "byte_counter.hpp"
#include "frame_memory.hpp"
#include "kept_index.hpp"
#include "parameter_sets.hpp"
#include "video_scan.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

extern "C" {
#include <libavcodec/avcodec.h>
}

namespace lade::media {

struct video::state {
  std::string name;
  scanned_video scanned;
  buffer file;                               // empty if the file is read by ranges
  std::shared_ptr<const byte_counter> from;  // null if it was opened in memory
  std::map<std::size_t, buffer> fetched;     // packets by number

  bool by_ranges() const noexcept { return from && file.empty(); }
  bool has_packet(std::size_t i) const {
    return i < scanned.index.packets().size() && (!by_ranges() || fetched.contains(i));
  }
  buffer bytes_of(std::size_t i) const;
  packet packet_at(std::size_t i) const;
};

buffer video::state::bytes_of(std::size_t i) const {
  const auto doing = [&] { return fmt::format("read packet {} of {}", i, name); };
  const auto& entry = scanned.index.packets()[i];
  if (by_ranges()) {
    const auto found = fetched.find(i);
    if (found != fetched.end()) return found->second;
    throw error(errc::invalid_argument, doing(), "its frame has not been fetched");
  }
  if (entry.position > file.size() || entry.size > file.size() - entry.position)
    throw error(errc::invalid_data, doing(), "the index is of another file");
  return file.slice(static_cast<std::size_t>(entry.position), entry.size);
}

// Copies the packet: decoders read past its end.
packet video::state::packet_at(std::size_t i) const {
  if (!scanned.packets.empty()) return scanned.packets[i];
  const auto& entry = scanned.index.packets()[i];
  const auto bytes = bytes_of(i);
  av_packet made(check_av(av_packet_alloc()));
  made->buf = allocate_av_buffer(entry.size + std::size_t{AV_INPUT_BUFFER_PADDING_SIZE});
  made->data = made->buf->data;
  made->size = static_cast<int>(entry.size);
  if (entry.size > 0) std::memcpy(made->data, bytes.data(), entry.size);
  std::memset(made->data + entry.size, 0, AV_INPUT_BUFFER_PADDING_SIZE);
  made->pts = entry.pts;
  made->dts = entry.dts == indexed_packet::no_timestamp ? AV_NOPTS_VALUE : entry.dts;
  made->duration = entry.duration;
  made->flags = (entry.key ? AV_PKT_FLAG_KEY : 0) | (entry.shown ? 0 : AV_PKT_FLAG_DISCARD);
  return packet(std::move(made));
}

video::video(buffer file, std::string name, const video_options& options) {
  auto scanned = scan_video(file, name, options);
  state_ = std::make_shared<const state>(
      state{std::move(name), std::move(scanned), std::move(file), nullptr, {}});
}

static void require_index_of(const packet_index& index, std::uint64_t file_bytes,
                             const std::string& name) {
  if (index.file_bytes() == 0 || index.file_bytes() == file_bytes) return;
  throw error(errc::changed, "open " + name,
              fmt::format("its index is of a file of {} bytes", index.file_bytes()));
}

video::video(buffer file, std::string name, packet_index index, const demux_options& demuxing) {
  require_index_of(index, file.size(), name);
  auto scanned = scan_with_index(file, name, std::move(index), demuxing);
  state_ = std::make_shared<const state>(
      state{std::move(name), std::move(scanned), std::move(file), nullptr, {}});
}

static std::size_t whole_size(const byte_reader& from) {
  return static_cast<std::size_t>(from.size());
}

static std::shared_ptr<const byte_counter> count_bytes(std::shared_ptr<const byte_reader> from) {
  if (!from) throw error(errc::invalid_argument, "open a video", "the reader is null");
  return std::make_shared<const byte_counter>(std::move(from));
}

task<video> video::open(std::shared_ptr<const byte_reader> from, video_options options) {
  const auto counted = count_bytes(from);
  std::string path;
  if (!options.index_directory.empty() && !from->is_in_memory())
    path = path_of_kept_index(*from, options);
  if (path.empty()) co_return co_await open_anew(counted, options);
  if (auto kept = co_await load_kept_index(path))
    co_return co_await open_with(counted, std::move(*kept), options.demuxing);
  auto opened = co_await open_anew(counted, options);
  if (opened.damaged() == 0) keep_index(opened.index(), path);
  co_return opened;
}

task<video> video::open_anew(std::shared_ptr<const byte_counter> from, video_options options) {
  auto& current = co_await this_context_reference();
  std::optional<box_headers> headers;
  if (!from->is_in_memory()) headers = co_await box_headers::read(from);
  if (headers) {
    co_await continue_on_pool();
    auto index = index_by_headers(std::move(*headers), from->name(), options);
    if (index) co_return co_await open_with(std::move(from), std::move(*index), options.demuxing);
  }
  auto content = co_await from->read_at(0, whole_size(*from));
  co_await continue_on_pool();
  auto scanned = scan_video(content, from->name(), options, current.stop);
  auto name = from->name();
  co_return video(std::make_shared<const state>(
      state{std::move(name), std::move(scanned), std::move(content), std::move(from), {}}));
}

task<video> video::open(std::shared_ptr<const byte_reader> from, packet_index index,
                        demux_options demuxing) {
  return open_with(count_bytes(std::move(from)), std::move(index), demuxing);
}

task<video> video::open_with(std::shared_ptr<const byte_counter> from, packet_index index,
                             demux_options demuxing) {
  auto name = from->name();
  require_index_of(index, from->size(), name);
  buffer content;
  const bool by_ranges = index.has_positions() && !from->is_in_memory();
  if (!by_ranges) content = co_await from->read_at(0, whole_size(*from));
  auto scanned = by_ranges ? scanned_video{std::move(index), {}, nullptr}
                           : scan_with_index(content, name, std::move(index), demuxing);
  co_return video(std::make_shared<const state>(
      state{std::move(name), std::move(scanned), std::move(content), std::move(from), {}}));
}

// The number of packets after a range that a decoder may need to return the last frames of the
// range. 0 if no later picture is shown before its key frame.
static std::size_t packets_after(std::span<const indexed_packet> entries,
                                 const packet_range& range) {
  constexpr std::size_t most_reordered = 16;  // ITU-T H.264, A.3.1
  const auto& key = entries[range.first];
  const auto behind = std::min(entries.size(), range.last + most_reordered);
  const auto first = entries.begin() + static_cast<std::ptrdiff_t>(range.first);
  const auto last = entries.begin() + static_cast<std::ptrdiff_t>(behind);
  const bool is_open = range.first > 0 && std::any_of(first, last, [&](const auto& each) {
                         return each.pts < key.pts;
                       });
  return is_open ? std::min(most_reordered, entries.size() - range.last) : 0;
}

// The numbers of the packets from which these frames are decoded.
static std::vector<std::size_t> packets_of(const packet_index& index,
                                           std::span<const std::int64_t> frames) {
  std::vector<std::size_t> numbers;
  for (const auto& range : index.ranges(frames))
    for (auto i = range.first; i < range.last + packets_after(index.packets(), range); ++i)
      numbers.push_back(i);
  return numbers;
}

static std::vector<std::size_t> key_packets_of(const packet_index& index) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < index.packets().size(); ++i)
    if (index.packets()[i].key) numbers.push_back(i);
  return numbers;
}

// Reads the packets that have not been fetched.
template <class State>
static task<> fetch_packets(std::shared_ptr<State> into, std::vector<std::size_t> numbers) {
  std::erase_if(numbers, [&](std::size_t i) { return into->fetched.contains(i); });
  std::vector<io::object_range> ranges;
  for (const auto i : numbers) {
    const auto& entry = into->scanned.index.packets()[i];
    ranges.push_back({entry.position, entry.size});
  }
  io::ranges_options options;
  options.gap_bytes = 16 << 10;
  auto contents = co_await io::read_ranges(into->from, std::move(ranges), options);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    into->fetched[numbers[i]] = std::move(contents[i]);
}

// Whether decoding can start at the key frames that these frames need.
static bool starts_well(const packet_index& index, std::span<const std::int64_t> frames,
                        const packet_bytes& bytes_of) {
  const auto ranges = index.ranges(frames);
  return std::none_of(ranges.begin(), ranges.end(), [&](const auto& each) {
    return begins_refresh(index.stream().parameters(), bytes_of(each.first));
  });
}

// MP4 headers do not state whether decoding can start at a key frame. If it cannot start at a
// needed one, all key frames are read, and such key frames are removed from the index.
task<video> video::fetch(std::vector<std::int64_t> numbers) const {
  const auto kept = state_;
  if (!kept->by_ranges()) co_return video(kept);
  auto fetched = std::make_shared<state>(*kept);
  auto& index = fetched->scanned.index;
  co_await fetch_packets(fetched, packets_of(index, numbers));
  const packet_bytes bytes_of = [&](std::size_t i) { return fetched->fetched.at(i).bytes(); };
  if (!starts_well(index, numbers, bytes_of)) {
    co_await fetch_packets(fetched, key_packets_of(index));
    index = require_starts(without_refreshes(index, bytes_of), kept->name);
    co_await fetch_packets(fetched, packets_of(index, numbers));
  }
  co_return video(std::shared_ptr<const state>(std::move(fetched)));
}

const std::string& video::name() const noexcept { return state_->name; }
const packet_index& video::index() const noexcept { return state_->scanned.index; }
std::uint64_t video::damaged() const noexcept { return state_->scanned.damaged; }
bool video::has_packet(std::size_t number) const { return state_->has_packet(number); }
packet video::packet_at(std::size_t number) const {
  if (number < index().packets().size()) return state_->packet_at(number);
  throw error(errc::invalid_argument, fmt::format("read packet {} of {}", number, name()),
              "there is no such packet");
}
std::uint64_t video::bytes_read() const noexcept {
  return state_->from ? state_->from->bytes_read() : 0;
}

// Decodes one range of packets, and delivers the selected frames.
class range_decoder {
 public:
  using use_frame = std::function<void(std::int64_t number, const frame& decoded)>;

  range_decoder(const packet_index& index, decoder& by, const packet_range& range,
                const use_frame& use, selection_statistics& counted, const std::stop_token& stop)
      : index_(index), by_(by), range_(range), use_(use), counted_(counted), stop_(stop) {}

  // Returns false if the decoder needs more packets for a selected frame. FFmpeg's H.264 decoder
  // may, after a key frame that is not an IDR picture. `to_end`: sends packets after the range
  // until all frames are decoded.
  template <class HasPacket, class PacketAt>
  bool run(const HasPacket& has_packet, const PacketAt& packet_at, bool to_end) {
    ++counted_.ranges;
    for (auto i = range_.first; !is_done() && (i < range_.last || (to_end && has_packet(i))); ++i) {
      if (is_unneeded(i)) continue;
      if (stop_.stop_requested() || stop_requested())
        throw error(errc::stopped, "decode frames of " + index_.stream().name());
      by_.skip_unreferenced(!index_.is_sequential() && i < range_.last && !is_wanted(i));
      by_.send(packet_at(i));
      ++counted_.packets;
      receive_all();
    }
    if (!is_done()) {
      by_.finish();
      receive_all();
    }
    by_.reset();
    return is_done();
  }

  // Throws: decoder options that skip frames would change the numbers of the others.
  [[noreturn]] void refuse_other(std::int64_t number) const {
    throw error(errc::invalid_data,
                fmt::format("decode frame {} of {}", number, index_.stream().name()),
                "the decoder returns other frames than when the video was indexed");
  }

  [[noreturn]] void refuse_missing() const {
    const auto number = range_.frames[next_];
    throw error(errc::invalid_data,
                fmt::format("decode frame {} of {} at {:f} s", number, index_.stream().name(),
                            index_.time(number).to_double()),
                "the decoder does not return it");
  }

 private:
  bool is_done() const noexcept { return next_ == range_.frames.size(); }

  // Whether a picture is shown before the range's key frame: it may refer to earlier packets.
  bool is_unneeded(std::size_t i) const {
    const auto packets = index_.packets();
    return !index_.is_sequential() && range_.first > 0 &&
           packets[i].pts < packets[range_.first].pts;
  }

  bool is_wanted(std::size_t i) const {
    const auto& packet = index_.packets()[i];
    const auto found = std::lower_bound(
        range_.frames.begin(), range_.frames.end(), packet.pts,
        [&](std::int64_t number, std::int64_t pts) { return index_.pts(number) < pts; });
    return packet.shown && found != range_.frames.end() && index_.pts(*found) == packet.pts;
  }

  void receive_all() {
    while (!is_done()) {
      const auto decoded = by_.receive();
      if (!decoded) return;
      ++counted_.frames;
      const auto number = range_.frames[next_];
      const bool has_its_time = decoded->pts() == index_.pts(number);
      if (index_.is_sequential() ? number != position_++ : !has_its_time) continue;
      if (decoded->pts() && !has_its_time) refuse_other(number);
      ++next_;
      use_(number, *decoded);
    }
  }

  const packet_index& index_;
  decoder& by_;
  const packet_range& range_;
  const use_frame& use_;
  selection_statistics& counted_;
  const std::stop_token& stop_;
  std::size_t next_ = 0;       // index in range_.frames
  std::int64_t position_ = 0;  // number of the next decoded frame, from the beginning
};

void video::for_each_frame(std::span<const std::int64_t> numbers,
                           const range_decoder::use_frame& use, const decode_options& options,
                           selection_statistics* counted, const std::stop_token& stop) const {
  selection_statistics ignored;
  auto& statistics = counted != nullptr ? *counted : ignored;
  const auto ranges = index().ranges(numbers);
  if (ranges.empty()) return;
  decoder by(stream(), options);
  const auto has_packet = [this](std::size_t i) { return state_->has_packet(i); };
  const auto packet_at = [this](std::size_t i) { return state_->packet_at(i); };
  bool to_end = false;
  for (const auto& each : ranges) {
    range_decoder decoding(index(), by, each, use, statistics, stop);
    if (decoding.run(has_packet, packet_at, to_end)) continue;
    to_end = true;
    if (!decoding.run(has_packet, packet_at, to_end)) decoding.refuse_missing();
  }
  statistics.damaged += by.damaged();
}

std::vector<frame> video::frames(std::span<const std::int64_t> numbers,
                                 const decode_options& options,
                                 selection_statistics* counted) const {
  std::map<std::int64_t, frame> decoded;
  for_each_frame(
      numbers, [&](std::int64_t number, const frame& each) { decoded.emplace(number, each); },
      options, counted);
  std::vector<frame> result;
  result.reserve(numbers.size());
  for (const auto number : numbers) result.push_back(decoded.at(number));
  return result;
}

std::vector<frame> video::frames_at(std::span<const rational> times, const decode_options& options,
                                    selection_statistics* counted) const {
  std::vector<std::int64_t> numbers;
  for (const auto& time : times) {
    const auto number = index().frame_at(time);
    if (!number)
      throw error(errc::invalid_argument,
                  fmt::format("find the frame at {} s of {}", to_string(time), name()),
                  fmt::format("it is shown from {} to {} s", to_string(index().time(0)),
                              to_string(index().end())));
    numbers.push_back(*number);
  }
  return frames(numbers, options, counted);
}

}  // namespace lade::media
