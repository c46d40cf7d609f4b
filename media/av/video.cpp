#include <lade/error.hpp>
#include <lade/media/av/video.hpp>

#include "video_scan.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

extern "C" {
#include <libavcodec/avcodec.h>
}

namespace lade::media {

struct video::state {
  buffer file;
  std::string name;
  scanned_video scanned;

  packet packet_at(std::size_t i) const;
};

// Decoders read behind the bytes of a packet, so that it needs a copy.
packet video::state::packet_at(std::size_t i) const {
  if (!scanned.packets.empty()) return scanned.packets[i];
  const auto& entry = scanned.index.packets()[i];
  if (entry.position > file.size() || entry.size > file.size() - entry.position)
    throw error(errc::invalid_data, "read packet " + std::to_string(i) + " of " + name,
                "the index is of another file");
  av_packet made(check_av(av_packet_alloc()));
  check_av(av_new_packet(made.get(), static_cast<int>(entry.size)), "allocate a packet");
  std::memcpy(made->data, file.data() + entry.position, entry.size);
  made->pts = entry.pts;
  made->dts = entry.dts == indexed_packet::no_timestamp ? AV_NOPTS_VALUE : entry.dts;
  made->duration = entry.duration;
  made->flags = (entry.key ? AV_PKT_FLAG_KEY : 0) | (entry.shown ? 0 : AV_PKT_FLAG_DISCARD);
  return packet(std::move(made));
}

video::video(buffer file, std::string name) {
  auto scanned = scan_video(file, name);
  state_ =
      std::make_shared<const state>(state{std::move(file), std::move(name), std::move(scanned)});
}

video::video(buffer file, std::string name, packet_index index) {
  std::vector<packet> all;
  if (!index.has_positions()) {
    all = read_all_packets(file, name, index.stream().index());
    if (all.size() != index.packets().size())
      throw error(errc::invalid_data, "open " + name, "the index is of another file");
  }
  state_ = std::make_shared<const state>(
      state{std::move(file), std::move(name), {std::move(index), std::move(all)}});
}

const std::string& video::name() const noexcept { return state_->name; }
const packet_index& video::index() const noexcept { return state_->scanned.index; }

// Decodes one range of packets and passes on the frames that are wanted of it.
class range_decoder {
 public:
  using use_frame = std::function<void(std::int64_t number, const frame& decoded)>;

  range_decoder(const packet_index& index, decoder& by, const packet_range& range,
                const use_frame& use, selection_statistics& counted)
      : index_(index), by_(by), range_(range), use_(use), counted_(counted) {}

  // Returns false if the decoder keeps back a wanted frame until it gets more packets. FFmpeg's
  // H.264 decoder does so behind a key frame that is no IDR picture. `to_end`: passes on packets
  // behind the range until all frames have come.
  template <class PacketAt>
  bool run(const PacketAt& packet_at, bool to_end) {
    ++counted_.ranges;
    const auto last = to_end ? index_.packets().size() : range_.last;
    for (auto i = range_.first; i < last && !is_done(); ++i) {
      if (is_unneeded(i)) continue;
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

  [[noreturn]] void refuse_missing() const {
    const auto number = range_.frames[next_];
    throw error(errc::invalid_data,
                "decode frame " + std::to_string(number) + " of " + index_.stream().name() +
                    " at " + std::to_string(index_.time(number).to_double()) + " s",
                "the decoder does not return it");
  }

 private:
  bool is_done() const noexcept { return next_ == range_.frames.size(); }

  // Pictures that are shown before the range's key frame may need packets before it.
  bool is_unneeded(std::size_t i) const {
    const auto packets = index_.packets();
    return !index_.is_sequential() && range_.first > 0 &&
           packets[i].pts < packets[range_.first].pts;
  }

  bool is_wanted(std::size_t i) const {
    const auto& of = index_.packets()[i];
    const auto found = std::lower_bound(
        range_.frames.begin(), range_.frames.end(), of.pts,
        [&](std::int64_t number, std::int64_t pts) { return index_.pts(number) < pts; });
    return of.shown && found != range_.frames.end() && index_.pts(*found) == of.pts;
  }

  void receive_all() {
    while (!is_done()) {
      const auto decoded = by_.receive();
      if (!decoded) return;
      ++counted_.frames;
      const auto wanted = range_.frames[next_];
      if (index_.is_sequential() ? wanted != position_++ : decoded->pts() != index_.pts(wanted))
        continue;
      ++next_;
      use_(wanted, *decoded);
    }
  }

  const packet_index& index_;
  decoder& by_;
  const packet_range& range_;
  const use_frame& use_;
  selection_statistics& counted_;
  std::size_t next_ = 0;       // of range_.frames
  std::int64_t position_ = 0;  // of the next decoded frame, from the beginning of the stream
};

void video::for_each_frame(std::span<const std::int64_t> numbers,
                           const range_decoder::use_frame& use, const decode_options& options,
                           selection_statistics* counted) const {
  selection_statistics ignored;
  auto& statistics = counted != nullptr ? *counted : ignored;
  const auto ranges = index().ranges(numbers);
  if (ranges.empty()) return;
  decoder by(stream(), options);
  const auto packet_at = [this](std::size_t i) { return state_->packet_at(i); };
  bool to_end = false;
  for (const auto& each : ranges) {
    range_decoder decoding(index(), by, each, use, statistics);
    if (decoding.run(packet_at, to_end)) continue;
    to_end = true;
    if (!decoding.run(packet_at, to_end)) decoding.refuse_missing();
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
                  "find the frame at " + to_string(time) + " s of " + name(),
                  "it is shown from " + to_string(index().time(0)) + " to " +
                      to_string(index().end()) + " s");
    numbers.push_back(*number);
  }
  return frames(numbers, options, counted);
}

}  // namespace lade::media
