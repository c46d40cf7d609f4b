#include "window_reader.hpp"

#include "parameter_sets.hpp"
#include "stream_fields.hpp"
#include "window_start.hpp"

#include <lade/error.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

namespace lade::media {

window_reader::window_reader(format_reader& file, int stream, const time_window& window)
    : file_(file),
      stream_(file.stream(stream)),
      window_(window),
      needs_beginning_(needs_beginning(stream_, file.format())) {
  if (window.begin && window.end && *window.end < *window.begin)
    throw error(errc::invalid_argument, file.doing("read a window of"), "it ends before it begins");
  const auto unit = stream_.time_base();
  if (window.begin) begin_ = floor_units(*window.begin, unit);
  if (window.end) end_ = ceil_units(*window.end, unit);
}

// The most pictures that can precede a picture in decoding order and follow it in presentation
// order (ITU-T H.264, A.3.1 and H.265, A.4.2).
static constexpr std::size_t most_reordered = 16;

static std::int64_t first_known(std::int64_t a, std::int64_t b) noexcept {
  return a != AV_NOPTS_VALUE ? a : b;
}

// Reads the first packet after a seek. If it has no presentation time, also reads the packets until
// which a decoder may return earlier frames, up to the start of the window.
std::vector<av_packet> window_reader::read_first() {
  std::vector<av_packet> first;
  const bool is_video = stream_.kind() == stream_kind::video;
  while (auto next = file_.read()) {
    first.push_back(std::move(next));
    const bool decides = !is_video || first.front()->pts != AV_NOPTS_VALUE;
    if (decides || first.back()->dts > begin_ || first.size() > most_reordered) break;
  }
  return first;
}

bool window_reader::is_start(const AVPacket& packet) const {
  if ((packet.flags & AV_PKT_FLAG_KEY) == 0) return false;
  const auto bytes = std::as_bytes(std::span(packet.data, static_cast<std::size_t>(packet.size)));
  return !begins_refresh(stream_.parameters(), bytes);
}

// Whether a seek ended too late: frames of the window may precede the first key frame in
// presentation order.
//   - Containers seek by decoding time.
//   - Matroska rounds times to milliseconds: frames before the key frame may have its time.
//   - A frame without a time is assigned the decoding time of the packet after which it is
//     returned.
bool window_reader::starts_late(const std::vector<av_packet>& first) const {
  if (stream_.kind() != stream_kind::video) return false;
  const auto& start = *first.front();
  if (!is_start(start)) return true;
  if (start.pts == AV_NOPTS_VALUE) return first.size() <= most_reordered;
  return start.pts > begin_ || (start.pts == begin_ && !file_.states_decoding_times());
}

// Less than all timestamps, but large enough that FFmpeg's arithmetic does not overflow.
static constexpr std::int64_t beginning = -(std::int64_t{1} << 40);

static std::optional<std::int64_t> first_time_of(const std::vector<av_packet>& packets) noexcept {
  for (const auto& each : packets)
    if (const auto time = first_known(each->dts, each->pts); time != AV_NOPTS_VALUE) return time;
  return std::nullopt;
}

void window_reader::rewind_file() {
  file_.rewind();
  file_.select(std::array{stream_.index()});
}

// Seeks to a packet from which the window can be decoded. For audio at the start of the file, it
// rewinds: a seek may skip the first packets.
void window_reader::seek_to_window() {
  const int index = stream_.index();
  constexpr std::int64_t last = std::int64_t{1} << 60;
  std::int64_t target = std::clamp(begin_, beginning, last) - lead_in_of(stream_);
  std::optional<std::int64_t> earlier;  // time of the first packet of the last attempt
  // Some containers seek to any packet, not only to key frames. So the steps double.
  for (std::int64_t step = 1;; step *= 2) {
    file_.seek(index, target);
    auto first = read_first();
    if (first.empty()) return;
    const auto time = first_time_of(first);
    if (stream_.kind() == stream_kind::audio && time && *time > target) return rewind_file();
    const bool is_first_of_file = time && time == earlier;
    if (target <= beginning || is_first_of_file || !starts_late(first)) {
      for (auto& each : first) keep(std::move(each));
      return;
    }
    earlier = time;
    target = std::max(beginning, std::min(target, time.value_or(target)) - step);
  }
}

// How many packets after the last one of the window are kept:
//   - Audio may start slightly before the time of its packet, unless that counts samples.
//   - Decoders return some frames only after further packets: frames of packets without a time, of
//     some audio codecs, and, in H.264, after a key frame that is not an IDR picture.
std::size_t window_reader::spare() const {
  if (stream_.kind() == stream_kind::video) return holds_back_ ? most_reordered : 0;
  if (stream_.kind() != stream_kind::audio) return 0;
  if (needs_beginning_) return 2;
  return stream_.time_base() * rational(stream_.sample_rate()) == 1 ? 0 : 1;
}

// Whether a packet and all later ones are after the window: no frame is shown before its decoding
// time. Matroska has no decoding times.
bool window_reader::is_behind(const AVPacket& next) const {
  if (reads_all_ || end_ == INT64_MAX) return false;
  const auto behind = all_.size() - wanted_;
  if (!file_.states_decoding_times()) return behind > most_reordered;
  const auto stamp = first_known(next.dts, next.pts);
  const auto margin = wavers_ ? ceil_units(most_wavering, stream_.time_base()) : 0;
  return stamp != AV_NOPTS_VALUE && stamp >= end_ && stamp - margin >= end_ && behind >= spare();
}

// Whether a picture follows the first key frame, but is shown before it, and so may refer to
// missing pictures. The window does not need it, except at the beginning of the file.
bool window_reader::is_leading(const AVPacket& next) const {
  if (!window_.begin || stream_.kind() != stream_kind::video || all_.empty()) return false;
  const auto first = all_.front().pts();
  return !reads_all_ && first && next.pts != AV_NOPTS_VALUE && next.pts < *first &&
         next.pts < begin_;
}

// Whether decoders return all frames from this packet on without further packets.
bool window_reader::starts_decoding(const packet& packet) const {
  return stream_.parameters().codec_id != AV_CODEC_ID_H264 ||
         begins_with_idr(stream_.parameters(), packet.data());
}

void window_reader::check_time(const AVPacket& next) {
  const auto time = first_known(next.dts, next.pts);
  if (time == AV_NOPTS_VALUE) return;
  has_times_ = true;
  const bool goes_back = time < latest_ && file_.states_decoding_times();
  latest_ = std::max(latest_, time);
  if (!goes_back || reads_all_ || !has_edges()) return;
  const bool is_other_part = file_.report_step_back(stream_.index(), {latest_, time, next.pos});
  reads_all_ = is_other_part;
  wavers_ = wavers_ || !is_other_part;
}

void window_reader::keep(av_packet next) {
  check_time(*next);
  if (is_leading(*next)) return;
  const auto stamp = first_known(next->pts, next->dts);
  bytes_ += memory_of(*next);
  all_.emplace_back(std::move(next));
  if (stamp == AV_NOPTS_VALUE || stamp < end_) wanted_ = all_.size();
  const auto& last = all_.back();
  const bool starts = last.is_key() || all_.size() == 1;
  holds_back_ = holds_back_ || !last.pts() || (starts && !starts_decoding(last));
}

void window_reader::begin() {
  const int index = stream_.index();
  if (has_edges()) {
    const auto& back = file_.find_step_back(index);
    reads_all_ = back && file_.report_step_back(index, *back);
    wavers_ = back && !reads_all_;
  }
  reads_all_ = reads_all_ || stream_.stored().edited;
  if (!seeks()) return rewind_file();
  file_.select(std::array{index});
  seek_to_window();
}

bool window_reader::step(std::size_t bytes) {
  if (!std::exchange(started_, true)) begin();
  const auto until = bytes_ + bytes;
  while (bytes_ < until) {
    auto next = file_.read();
    if (!next || is_behind(*next)) return false;
    keep(std::move(next));
  }
  return true;
}

// Drops the packets before the last key frame from which the window can be decoded.
void window_reader::drop_needless() {
  if (!window_.begin || stream_.kind() != stream_kind::video || reads_all_) return;
  std::size_t start = 0;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const auto stamp = all_[i].pts();
    if (!stamp || *stamp > begin_) break;
    if (is_start(all_[i].get())) start = i;
    if (*stamp == begin_) break;
  }
  if (start == 0) return;
  all_.erase(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(start));
  std::erase_if(all_, [&](const packet& each) { return is_leading(each.get()); });
}

packets window_reader::take() && {
  if (has_edges() && !all_.empty() && !has_times_)
    throw error(errc::unsupported, "read a window of " + stream_.name(), "it states no times");
  const auto behind = all_.size() - wanted_;
  drop_needless();
  const bool has_all_times =
      std::all_of(all_.begin(), all_.end(), [](const auto& each) { return each.pts(); });
  holds_back_ = !has_all_times || (!all_.empty() && !starts_decoding(all_.front()));
  const auto dropped = behind - std::min(behind, spare());
  all_.erase(all_.end() - static_cast<std::ptrdiff_t>(dropped), all_.end());
  return {std::move(stream_), std::move(all_), window_};
}

}  // namespace lade::media
