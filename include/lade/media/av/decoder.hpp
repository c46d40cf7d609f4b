// Decoders: packets in, frames out.

#pragma once

#include <lade/media/av.hpp>
#include <lade/media/av/damage.hpp>
#include <lade/media/av/frame.hpp>
#include <lade/media/av/packet.hpp>
#include <lade/media/av/stream_info.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace lade::media {

struct decode_options {
  // FFmpeg's name of the decoder: "libdav1d". If empty: FFmpeg's choice for the codec.
  std::string_view decoder = {};

  // Options of the decoder as "key=value:key=value". Unknown options are refused.
  std::string_view options = {};

  // Number of decoding threads; 1: the calling thread. One clip per worker is faster than several
  // threads for one clip. More threads suit a program that decodes a single stream. TIFF is decoded
  // by one thread, and so is MPEG-4 Part 2 if damage is refused.
  int threads = 1;

  // For H.264 and HEVC, decoders with several threads do not detect missing pictures.
  damage_policy damage = damage_policy::refuse;

  // Maximum number of pixels of a picture, checked before memory is allocated.
  std::int64_t max_pixels = 89'478'485;
};

// Decodes one stream. Memory for frames is allocated from the calling stage, so it counts to the
// budget of the run.
//
// One thread at a time. FFmpeg's contexts are reused where a flush resets them completely: those of
// H.264, HEVC, VP8, VP9, AV1, MP3, Vorbis, FLAC, ALAC and PCM. A decoder takes an idle context for
// equal parameters and options, and returns it when done.
class decoder {
 public:
  // Throws error(unsupported) for a stream that is neither video nor audio, or without a decoder in
  // FFmpeg; error(invalid_argument) for an option that the decoder does not have or cannot use;
  // error(invalid_data) for invalid parameters of the stream.
  explicit decoder(const stream_info& stream, const decode_options& options = {});
  decoder(decoder&&) noexcept;
  decoder& operator=(decoder&&) noexcept;
  ~decoder();

  const stream_info& stream() const noexcept;

  // Decodes a packet. Call receive() until it returns nothing before the next send(). Throws
  // error(invalid_data), or FFmpeg's error, if the packet is damaged and damage is refused, and
  // error(stopped) if the calling stage is cancelled.
  void send(const packet& next);

  // Ends the stream: receive() returns the frames that the decoder still holds. The next send()
  // begins a new stream. reset() begins a new stream at any time, and drops these frames.
  void finish();
  void reset();

  // Returns the next frame in presentation order; empty if the decoder needs another packet or has
  // finished. Throws as send() does.
  std::optional<frame> receive();

  // Whether unreferenced frames are skipped, which saves their decoding; valid until the next call.
  // Streams skip only if can_skip() is true; others decode everything. They are H.264, MPEG-1, -2
  // and -4, and HEVC of MP4 and Matroska without temporal sub-layers, decoded by one thread.
  void skip_unreferenced(bool skip);
  bool can_skip() const noexcept;

  // Number of packets refused and frames repaired since construction; 0 if damage is refused.
  std::uint64_t damaged() const noexcept;

 private:
  class state;
  std::unique_ptr<state> state_;
};

// Decodes packets. Returns the frames in their window, in presentation order. For audio, returns
// exactly the samples in the window, by the times that the container states.
//
// A frame without a timestamp has the time of the previous frame; for audio, the time at its end.
// If there is no previous frame, it is returned only if the window is the whole stream. `video`
// knows the whole file, so it assigns a time to each such frame. `damaged`: if not null,
// incremented by the number of damaged packets and frames. Throws as the members of decoder do.
std::vector<frame> decode(const packets& from, const decode_options& options = {},
                          std::uint64_t* damaged = nullptr);

}  // namespace lade::media
