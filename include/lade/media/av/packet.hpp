// Packets: pieces of an encoded stream, in the order in which a decoder takes them.

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
  // Takes over FFmpeg's packet. Its bytes are copied unless they are reference-counted.
  explicit packet(av_packet from);

  std::span<const std::byte> data() const noexcept;

  // When the frame is shown, and when it is decoded; empty if the file does not state it.
  std::optional<std::int64_t> pts() const noexcept;
  std::optional<std::int64_t> dts() const noexcept;
  std::int64_t duration() const noexcept;  // 0 if unknown

  bool is_key() const noexcept;        // as its container says
  bool is_discarded() const noexcept;  // decoded, but not shown: an edit list cuts the frame off

  // Offset of the packet in its file; empty if unknown. Not all containers store the bytes of a
  // packet in one piece there.
  std::optional<std::uint64_t> position() const noexcept;

  // FFmpeg's packet, owned by this object and its copies.
  const AVPacket& get() const noexcept { return *packet_; }

  packet clone() const;  // a packet with its own copy of the bytes and side data

 private:
  std::shared_ptr<const AVPacket> packet_;
};

// Packets of one stream in decoding order, with all that a decoder needs: the stream's parameters,
// and the window of time whose frames are wanted. Packets before the window are there because
// decoding starts at a key frame.
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

  // What all packets together take of memory: data, side data, and packet_bytes for each.
  std::size_t memory_bytes() const noexcept;
  static constexpr std::size_t packet_bytes = 512;  // FFmpeg's structures and padding, rounded up

  // The `count` packets from `first` on, sharing their bytes, with the same window. Throws
  // error(invalid_argument) if they are not all there.
  packets slice(std::size_t first, std::size_t count) const;

  packets clone() const;  // packets with their own bytes

  // The packets in a format of lade's own, version 1: parameters, window, timestamps, flags, side
  // data, bytes. Little-endian; parse() documents the limits. The memory is the calling stage's.
  buffer serialise() const;

  // The inverse. Packets' bytes are copied out of `bytes`. `name`: what errors call it. Throws
  // error(invalid_data) for anything that serialise() cannot have written, error(unsupported) for
  // another version.
  static packets parse(const buffer& bytes, std::string_view name);

  // Keeps memory counted to the budget of a run as long as a copy of the packets lives.
  void attach(memory_charge charged);

 private:
  stream_info stream_;
  std::vector<packet> all_;
  time_window window_;
  std::vector<std::shared_ptr<const memory_charge>> charges_;
};

// The packets after bitstream filters of FFmpeg, as in its command line:
// "h264_mp4toannexb,dump_extra". The stream of the result has the parameters that the filters
// state. Throws error(invalid_argument) for an unknown filter or option, FFmpeg's error if a filter
// fails.
packets filter_packets(const packets& from, std::string_view filters);

}  // namespace lade::media
