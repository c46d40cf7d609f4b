#include "window_reader.hpp"

#include "stream_fields.hpp"

#include <lade/error.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace lade::media {

window_reader::window_reader(format_reader& file, int stream, const time_window& window)
    : file_(file), stream_(file.stream(stream)), window_(window) {
  if (window.begin && window.end && *window.end < *window.begin)
    throw error(errc::invalid_argument, file.doing("read a window of"), "it ends before it begins");
  const auto unit = stream_.time_base();
  if (window.begin) begin_ = (*window.begin / unit).floor();
  if (window.end) end_ = (*window.end / unit).ceil();
}

static std::int64_t first_known(std::int64_t a, std::int64_t b) noexcept {
  return a != AV_NOPTS_VALUE ? a : b;
}

// Lossy audio needs what came before: a frame to overlap with (AAC, Vorbis), a reservoir of bits
// (MP3), 80 ms until the state has converged (Opus, RFC 7845, 4.2).
std::int64_t lead_in_of(const stream_info& stream) {
  if (stream.kind() != stream_kind::audio) return 0;
  return (rational(1, 4) / stream.time_base()).ceil();
}

// Frames of the window may come before the first key frame in presentation order, although a
// container finds that by its decoding time. Matroska rounds times to milliseconds: frames before
// the key frame may have its time.
bool window_reader::starts_late(const AVPacket& first) const {
  if (stream_.kind() != stream_kind::video) return false;
  const auto stamp = first_known(first.pts, first.dts);
  const bool late = stamp > begin_ || (stamp == begin_ && !file_.states_decoding_times());
  return (stamp != AV_NOPTS_VALUE && late) || (first.flags & AV_PKT_FLAG_KEY) == 0;
}

// Before all timestamps, but not so far that FFmpeg's arithmetic overflows.
static constexpr std::int64_t beginning = -(std::int64_t{1} << 40);

void window_reader::go_to_begin() {
  const int index = stream_.index();
  std::int64_t target = std::max(begin_, beginning) - lead_in_of(stream_);
  std::optional<std::int64_t> earlier;  // first timestamp of the last try
  while (true) {
    file_.seek(index, target);
    auto first = file_.read();
    if (!first) return;
    const auto stamp = first_known(first->dts, first->pts);
    const bool again =
        target > beginning && starts_late(*first) && stamp != AV_NOPTS_VALUE && stamp != earlier;
    if (!again) return keep(std::move(first));
    earlier = stamp;
    target = std::min(target, stamp) - 1;
  }
}

// No frame comes before its decoding time, so that none of the window follows a packet whose
// decoding time is the end of the window. Matroska has no decoding times; there, no more packets
// behind the window come before one inside of it than a decoder can reorder: 16 (ITU-T H.264, A.3.1
// and H.265, A.4.2).
bool window_reader::is_behind(const AVPacket& next) const {
  constexpr std::size_t most_reordered = 16;
  if (end_ == INT64_MAX) return false;
  if (!file_.states_decoding_times()) return all_.size() - wanted_ > most_reordered;
  const auto stamp = first_known(next.dts, next.pts);
  return stamp != AV_NOPTS_VALUE && stamp >= end_;
}

// Pictures that come after the first key frame, but are shown before it, may need pictures before
// it. None of the window needs them.
bool window_reader::is_leading(const AVPacket& next) const {
  if (!window_.begin || stream_.kind() != stream_kind::video || all_.empty()) return false;
  const auto first = all_.front().pts();
  return first && next.pts != AV_NOPTS_VALUE && next.pts < *first;
}

void window_reader::keep(av_packet next) {
  if (is_leading(*next)) return;
  const auto stamp = next->pts;
  bytes_ += memory_of(*next);
  all_.emplace_back(std::move(next));
  if (stamp == AV_NOPTS_VALUE || stamp < end_) wanted_ = all_.size();
}

bool window_reader::step(std::size_t bytes) {
  if (!std::exchange(started_, true)) {
    if (!window_.begin) file_.rewind();
    file_.select(std::array{stream_.index()});
    if (window_.begin) go_to_begin();
  }
  const auto until = bytes_ + bytes;
  while (bytes_ < until) {
    auto next = file_.read();
    if (!next || is_behind(*next)) return false;
    keep(std::move(next));
  }
  return true;
}

// Drops the packets before the last key frame that the window can start from.
void window_reader::drop_needless() {
  if (!window_.begin || stream_.kind() != stream_kind::video) return;
  std::size_t start = 0;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const auto stamp = all_[i].pts();
    if (!stamp || *stamp > begin_) break;
    if (all_[i].is_key()) start = i;
    if (*stamp == begin_) break;
  }
  if (start == 0) return;
  all_.erase(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(start));
  std::erase_if(all_, [&](const packet& each) { return is_leading(each.get()); });
}

packets window_reader::take() && {
  all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(wanted_), all_.end());
  drop_needless();
  return {std::move(stream_), std::move(all_), window_};
}

}  // namespace lade::media
