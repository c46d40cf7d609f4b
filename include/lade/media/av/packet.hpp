// Packets: pieces of an encoded stream, in decoding order.

#pragma once

#include <lade/buffer.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/media/av.hpp>
#include <lade/media/av/rational.hpp>
#include <lade/media/av/stream_info.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lade::media {

// The encoded bytes of one frame of a video, or of a few frames of audio. Timestamps and durations
// are in units of the stream's time base.
//
// Immutable. Copies share the bytes. Any thread.
class packet {
 public:
  // Owns FFmpeg's packet. Its bytes are copied unless they are reference-counted.
  explicit packet(av_packet from);

  std::span<const std::byte> data() const noexcept;

  // Presentation time and decoding time of the frame; empty if the file does not state them.
  std::optional<std::int64_t> pts() const noexcept;
  std::optional<std::int64_t> dts() const noexcept;
  std::int64_t duration() const noexcept;  // 0 if unknown

  bool is_key() const noexcept;        // as the container states
  bool is_discarded() const noexcept;  // decoded, but not shown: an edit list cuts the frame off

  // Offset of the packet in its file; empty if unknown. Some containers do not store the bytes of a
  // packet contiguously there.
  std::optional<std::uint64_t> position() const noexcept;

  // FFmpeg's packet, owned by this object and its copies.
  const AVPacket& get() const noexcept { return *packet_; }

  packet clone() const;  // copies the bytes and side data

 private:
  std::shared_ptr<const AVPacket> packet_;
};

// Packets of one stream in decoding order, with everything that a decoder needs: the parameters of
// the stream, and the window of time of the requested frames. There are packets before the window,
// because decoding starts at a key frame.
//
// A value: copies share the packets' bytes. Any thread may read it.
class packets {
 public:
  packets(stream_info stream, std::vector<packet> all, time_window window = {});

  const stream_info& stream() const noexcept { return stream_; }
  const time_window& window() const noexcept { return window_; }

  std::size_t size() const noexcept { return all_.size(); }
  bool empty() const noexcept { return all_.empty(); }
  const packet& operator[](std::size_t i) const noexcept { return all_[i]; }
  auto begin() const noexcept { return all_.begin(); }
  auto end() const noexcept { return all_.end(); }

  std::size_t data_bytes() const noexcept;  // of all packets together

  // Memory of all packets in bytes: data, side data, and packet_bytes for each.
  std::size_t memory_bytes() const noexcept;
  static constexpr std::size_t packet_bytes = 512;  // FFmpeg's structures and padding, rounded up

  // Returns the `count` packets from `first` on, with the same window. The packets share their
  // bytes. Throws error(invalid_argument) if the range exceeds the packets.
  packets slice(std::size_t first, std::size_t count) const;

  packets clone() const;  // copies the bytes

  // Returns the packets in lade's own format, version 1: parameters, window, timestamps, flags,
  // side data, bytes. Little-endian. The buffer is in memory of the calling stage.
  buffer serialise() const;

  // The inverse of serialise(). Copies the packets' bytes from `bytes`. `name`: the name of the
  // bytes in errors. Throws error(invalid_data) for anything that serialise() cannot have written,
  // and error(unsupported) for another version.
  static packets parse(const buffer& bytes, std::string_view name);

  // Keeps a charge to the budget of a run for as long as a copy of the packets lives.
  void attach(memory_charge charged);

 private:
  stream_info stream_;
  std::vector<packet> all_;
  time_window window_;
  std::vector<std::shared_ptr<const memory_charge>> charges_;
};

// Returns the packets after bitstream filters of FFmpeg, in the syntax of its command line:
// "h264_mp4toannexb,dump_extra". The stream of the result has the parameters of the filters'
// output. Throws error(invalid_argument) for an unknown filter or option, and FFmpeg's error if a
// filter fails.
packets filter_packets(const packets& from, std::string_view filters);

}  // namespace lade::media
