#include <lade/error.hpp>
#include <lade/media/av/packet_index.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

extern "C" {
#include <libavcodec/avcodec.h>
}

namespace lade::media {

struct packet_index::state {
  // A frame and the packet that it is decoded from.
  struct indexed_frame {
    std::int64_t pts = 0;
    std::size_t packet = 0;
  };

  stream_info stream;
  std::vector<indexed_packet> packets;
  std::vector<indexed_frame> frames;  // in presentation order
  std::vector<std::size_t> starts;    // by packet: the key frame from which it is decoded
  bool has_positions = false;
  bool sequential = false;
  bool ascends = true;  // the times of the frames increase
  std::uint64_t file_bytes = 0;

  const indexed_frame& frame(std::int64_t number) const {
    if (number >= 0 && static_cast<std::size_t>(number) < frames.size())
      return frames[static_cast<std::size_t>(number)];
    throw error(errc::invalid_argument, fmt::format("find frame {} of {}", number, stream.name()),
                fmt::format("it has {}", frames.size()));
  }
};

// A picture that follows a key frame but is shown before it may refer to the previous group of
// pictures: it is decoded from the last key frame that is shown before it, or the first packet.
static std::vector<std::size_t> starts_of(const std::vector<indexed_packet>& packets) {
  std::vector<std::size_t> starts(packets.size());
  std::vector<std::size_t> keys;  // key frames, ascending in decoding and presentation order
  const auto pts_of = [&](std::size_t i) { return packets[i].pts; };
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (packets[i].key) {
      while (!keys.empty() && pts_of(keys.back()) >= pts_of(i)) keys.pop_back();
      keys.push_back(i);
    }
    const auto behind = std::ranges::upper_bound(keys, pts_of(i), {}, pts_of);
    starts[i] = behind == keys.begin() ? 0 : *std::prev(behind);
  }
  return starts;
}

packet_index::packet_index(stream_info stream, std::vector<indexed_packet> packets,
                           bool has_positions, std::uint64_t file_bytes) {
  auto made = std::make_shared<state>(state{.stream = std::move(stream),
                                            .packets = std::move(packets),
                                            .frames = {},
                                            .starts = {},
                                            .has_positions = has_positions,
                                            .file_bytes = file_bytes});
  for (std::size_t i = 0; i < made->packets.size(); ++i)
    if (made->packets[i].shown) made->frames.push_back({made->packets[i].pts, i});
  std::sort(made->frames.begin(), made->frames.end(), [](const auto& a, const auto& b) {
    return std::pair(a.pts, a.packet) < std::pair(b.pts, b.packet);
  });
  made->starts = starts_of(made->packets);
  state_ = std::move(made);
}

packet_index::packet_index(stream_info stream, std::vector<indexed_packet> packets,
                           std::vector<std::int64_t> frame_times, std::uint64_t file_bytes) {
  auto made = std::make_shared<state>(state{.stream = std::move(stream),
                                            .packets = std::move(packets),
                                            .frames = {},
                                            .starts = {},
                                            .sequential = true,
                                            .file_bytes = file_bytes});
  for (const auto time : frame_times) made->frames.push_back({time, 0});
  made->ascends = std::is_sorted(frame_times.begin(), frame_times.end());
  state_ = std::move(made);
}

std::uint64_t packet_index::file_bytes() const noexcept { return state_->file_bytes; }
const stream_info& packet_index::stream() const noexcept { return state_->stream; }
std::span<const indexed_packet> packet_index::packets() const noexcept { return state_->packets; }
bool packet_index::has_positions() const noexcept { return state_->has_positions; }
bool packet_index::is_sequential() const noexcept { return state_->sequential; }
std::int64_t packet_index::size() const noexcept {
  return static_cast<std::int64_t>(state_->frames.size());
}
std::int64_t packet_index::pts(std::int64_t frame) const { return state_->frame(frame).pts; }

rational packet_index::time(std::int64_t frame) const {
  return rational(pts(frame)) * state_->stream.time_base();
}

// The duration of the last frame is the stated one, or else that of the frame before.
rational packet_index::end() const {
  const auto& frames = state_->frames;
  if (frames.empty()) return {};
  const auto last = rational(std::ranges::max(frames, {}, &state::indexed_frame::pts).pts);
  rational duration(state_->sequential ? 0 : state_->packets[frames.back().packet].duration);
  if (duration <= 0 && frames.size() > 1) duration = last - rational(frames[frames.size() - 2].pts);
  return (last + std::max<rational>(1, duration)) * stream().time_base();
}

std::optional<std::int64_t> packet_index::frame_at(const rational& time) const {
  if (!state_->ascends)
    throw error(errc::unsupported,
                fmt::format("find the frame at {} s of {}", to_string(time), stream().name()),
                "its times go back: frames are found by their numbers only");
  const auto stamp = floor_units(time, stream().time_base());
  const auto& frames = state_->frames;
  const auto after =
      std::upper_bound(frames.begin(), frames.end(), stamp,
                       [](auto value, const auto& each) { return value < each.pts; });
  if (after == frames.begin() || time >= end()) return std::nullopt;
  return after - frames.begin() - 1;
}

bool packet_index::is_key(std::int64_t frame) const {
  const auto& found = state_->frame(frame);
  return state_->sequential ? frame == 0 : state_->packets[found.packet].key;
}

std::vector<packet_range> packet_index::ranges(std::span<const std::int64_t> frames) const {
  std::vector<std::int64_t> frame_numbers(frames.begin(), frames.end());
  std::sort(frame_numbers.begin(), frame_numbers.end());
  frame_numbers.erase(std::unique(frame_numbers.begin(), frame_numbers.end()), frame_numbers.end());
  if (frame_numbers.empty()) return {};
  (void)state_->frame(frame_numbers.front());
  (void)state_->frame(frame_numbers.back());
  if (state_->sequential) return {{0, state_->packets.size(), std::move(frame_numbers)}};
  const auto packet_of = [&](std::int64_t number) { return state_->frame(number).packet; };
  std::sort(frame_numbers.begin(), frame_numbers.end(),
            [&](auto a, auto b) { return packet_of(a) < packet_of(b); });
  std::vector<packet_range> ranges;
  for (const auto number : frame_numbers) {
    const auto packet = packet_of(number);
    const auto start = state_->starts[packet];
    if (ranges.empty() || start > ranges.back().last) ranges.push_back({start, 0, {}});
    auto& range = ranges.back();
    range.first = std::min(range.first, start);
    range.last = packet + 1;
    range.frames.push_back(number);
  }
  for (auto& each : ranges) std::sort(each.frames.begin(), each.frames.end());
  return ranges;
}

// Codecs whose packets contain at most one shown frame each.
static bool has_frame_in_each_packet(AVCodecID codec) noexcept {
  constexpr std::array known{AV_CODEC_ID_H264,       AV_CODEC_ID_HEVC,   AV_CODEC_ID_VP8,
                             AV_CODEC_ID_VP9,        AV_CODEC_ID_AV1,    AV_CODEC_ID_MPEG1VIDEO,
                             AV_CODEC_ID_MPEG2VIDEO, AV_CODEC_ID_MPEG4,  AV_CODEC_ID_MJPEG,
                             AV_CODEC_ID_FFV1,       AV_CODEC_ID_PRORES, AV_CODEC_ID_DNXHD,
                             AV_CODEC_ID_RAWVIDEO};
  return std::find(known.begin(), known.end(), codec) != known.end();
}

// Whether the codec shows pictures in coding order, whatever their timestamps.
static bool keeps_order(AVCodecID codec) noexcept {
  const auto* about = avcodec_descriptor_get(codec);
  return about != nullptr && (about->props & AV_CODEC_PROP_REORDER) == 0;
}

bool packets_tell_frames(const stream_info& stream, std::span<const indexed_packet> packets) {
  if (packets.empty() || !packets.front().key) return false;
  const auto codec = stream.parameters().codec_id;
  if (!has_frame_in_each_packet(codec)) return false;
  std::unordered_set<std::int64_t> seen;
  constexpr std::int64_t largest = std::int64_t{1} << 60;  // no overflow in arithmetic
  std::int64_t last = INT64_MIN;                           // latest shown time so far
  std::int64_t last_before_group = INT64_MIN;
  for (const auto& each : packets) {
    if (each.pts < -largest || each.pts > largest) return false;  // or unknown
    if (each.key) last_before_group = last;
    if (!each.shown) continue;
    if (each.pts < packets.front().pts || each.pts <= last_before_group) return false;
    if (!seen.insert(each.pts).second) return false;
    if (each.pts < last && keeps_order(codec)) return false;
    last = std::max(last, each.pts);
  }
  return true;
}

}  // namespace lade::media
