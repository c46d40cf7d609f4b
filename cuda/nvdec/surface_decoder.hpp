// One stream on one decoder of NVDEC.

#pragma once

#include "elementary_stream.hpp"
#include "sessions.hpp"

#include <lade/cuda/event.hpp>
#include <lade/cuda/nvdec/surface.hpp>
#include <lade/cuda/nvdec/surfaces.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/media/av/packet.hpp>
#include <lade/task.hpp>

#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lade::cuda {

// Who takes the pictures of a surface_decoder.
class surface_consumer {
 public:
  virtual bool needs(std::int64_t pts) const = 0;
  virtual void consume(std::int64_t pts, const surface& shown) = 0;

 protected:
  ~surface_consumer() = default;
};

// Packets go to NVDEC's parser. Inside of that call, it calls back: with the format of a sequence,
// for which a decoder is taken from the cache; with pictures to decode; with pictures to show, in
// the order in which they are shown. A picture to show must be mapped before the callback returns,
// since the parser may decode another one into its memory.
//
// A mapped picture is a copy in one of a few output surfaces. The taker enqueues work that reads
// it, and an event behind that. The surface is unmapped when the event has been passed. If the
// event cannot be awaited, because the device has failed, surface and decoder are abandoned.
//
// One thread at a time. settle() must be awaited before the destructor, which else abandons the
// decoder.
class surface_decoder {
 public:
  surface_decoder(std::shared_ptr<decoder_sessions> sessions, const media::stream_info& from,
                  const stream& on, const surface_options& options, surface_consumer& to);
  surface_decoder(const surface_decoder&) = delete;
  ~surface_decoder();

  // Decoding starts at the next packet, a key frame.
  void begin();

  // Throws error; error(unsupported) for what NVDEC cannot decode, error(invalid_data) for damage
  // that it reports.
  void send(const media::packet& next);

  // Shows the pictures that the parser holds back.
  void finish();

  // Waits until the next picture can be mapped.
  task<> wait_for_surface();

  // Waits until no picture is mapped, and leaves the decoder for the next stream. A stop does not
  // end it. Throws error if the device has failed.
  task<> settle();

 private:
  struct mapped_surface {
    unsigned long long address;
    event passed;
  };

  template <class F>
  int guarded(F callback) noexcept;
  static int on_sequence(void* self, CUVIDEOFORMAT* format) noexcept;
  static int on_decode(void* self, CUVIDPICPARAMS* picture) noexcept;
  static int on_display(void* self, CUVIDPARSERDISPINFO* picture) noexcept;

  int begin_sequence(const CUVIDEOFORMAT& format);
  bool maps_all() const noexcept;
  decoder_format::rectangle part_of(const CUVIDEOFORMAT& sequence) const;
  decoder_format format_for(const CUVIDEOFORMAT& sequence) const;
  surface surface_for(const CUVIDEOFORMAT& sequence) const;
  void show(const CUVIDPARSERDISPINFO& picture);
  void deliver(const CUVIDPARSERDISPINFO& picture, unsigned pitch);
  unsigned long long map(const CUVIDPARSERDISPINFO& picture, unsigned& pitch);
  void require_whole(int picture_index);
  surface at(unsigned long long address, unsigned pitch) const;
  void parse(CUVIDSOURCEDATAPACKET& data);
  void end_parser() noexcept;

  event unused_event();
  void unmap_passed();
  void unmap_first();
  void unmap_after_stream();
  task<> wait_for_last();
  void block_for_surface();
  void abandon() noexcept;

  std::shared_ptr<decoder_sessions> sessions_;
  media::stream_info stream_;
  elementary_stream bytes_;
  stream on_;
  surface_options options_;
  surface_consumer& to_;
  std::string doing_;

  CUvideoparser parser_ = nullptr;
  bool starts_ = true;  // the next packet is the first one
  std::unique_ptr<open_decoder> decoder_;
  bool is_reusable_ = true;            // the decoder may be used again
  surface shown_;                      // what surfaces of the sequence have in common
  std::deque<mapped_surface> mapped_;  // in the order of their events
  std::vector<event> spare_;
  std::exception_ptr failed_;  // in a callback: C code must not see exceptions
};

}  // namespace lade::cuda
