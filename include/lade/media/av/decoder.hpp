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
  // FFmpeg's name of the decoder: "libdav1d". FFmpeg's choice for the codec if empty.
  std::string_view decoder = {};

  // Options of the decoder as "key=value:key=value". Unknown ones are refused.
  std::string_view options = {};

  // Threads that decode; with 1, the calling one. One clip per worker is faster than several
  // threads for one clip; more threads suit a program that decodes a single stream. TIFF is decoded
  // by one thread, and so is MPEG-4 Part 2 if damage is refused.
  int threads = 1;

  // Of H.264 and HEVC, decoders of several threads do not notice pictures that are missing.
  damage_policy damage = damage_policy::refuse;

  // The most pixels a picture may have; checked before memory is allocated.
  std::int64_t max_pixels = 89'478'485;
};

// Decodes one stream. Takes its memory for frames from the stage that calls, so that the budget of
// a run sees it.
//
// One thread at a time. Contexts of FFmpeg are reused where a flush makes them as new, as those of
// H.264, HEVC, VP8, VP9, AV1, MP3, Vorbis, FLAC, ALAC and PCM: a decoder takes one that was made
// for equal parameters and options, and leaves it for the next.
class decoder {
 public:
  // Throws error(unsupported) for a stream that is neither video nor audio, or that FFmpeg has no
  // decoder for; error(invalid_argument) for an option that the decoder does not have or cannot
  // use; error(invalid_data) for parameters that no stream has.
  explicit decoder(const stream_info& stream, const decode_options& options = {});
  decoder(decoder&&) noexcept;
  decoder& operator=(decoder&&) noexcept;
  ~decoder();

  const stream_info& stream() const noexcept;

  // Decodes a packet. Call receive() until it returns nothing before the next send(). Throws
  // error(invalid_data), or what FFmpeg says of it, if the packet is damaged and damage is refused;
  // error(stopped) if the stage that calls is being stopped.
  void send(const packet& next);

  // Ends the stream: receive() returns the frames that the decoder still holds. The next send()
  // begins a new stream; reset() does so at any time, and drops those frames.
  void finish();
  void reset();

  // The next frame in presentation order; empty if the decoder needs another packet or has
  // finished. Throws as send() does.
  std::optional<frame> receive();

  // Until the next call: whether frames that no other frame needs are left out, which saves their
  // decoding. Only streams where can_skip() is true skip; others decode everything.
  // These are H.264, MPEG-1, -2 and -4, and HEVC of MP4 and Matroska without temporal sub-layers;
  // and only decoders of one thread skip.
  void skip_unreferenced(bool skip);
  bool can_skip() const noexcept;

  // How many packets were refused and frames repaired since construction; 0 if damage is refused.
  std::uint64_t damaged() const noexcept;

 private:
  class state;
  std::unique_ptr<state> state_;
};

// Decodes packets. Returns the frames in their window, in presentation order; of audio, exactly the
// samples in it, by the times that the container states. A frame without a timestamp is where the
// one before it is, of audio behind that one. If there is none, it is returned only if the window
// is all of the stream. `video` knows the whole file, and so gives such frames times of their own.
// `damaged`: incremented by the number of damaged packets and frames, if given. Throws what the
// members of decoder throw.
std::vector<frame> decode(const packets& from, const decode_options& options = {},
                          std::uint64_t* damaged = nullptr);

}  // namespace lade::media
