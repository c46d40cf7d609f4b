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

// Receives the pictures of a surface_decoder.
class surface_consumer {
 public:
  // Whether the picture with this timestamp is needed. Others are not mapped.
  virtual bool needs(std::int64_t pts) const = 0;

  // Enqueues work on the decoder's stream that reads the surface. The surface is valid until that
  // work has finished.
  virtual void consume(std::int64_t pts, const surface& shown) = 0;

 protected:
  ~surface_consumer() = default;
};

// Decodes the packets of one stream with NVDEC. send() passes a packet to the parser, which calls
// back before it returns:
//
//   on_sequence  the format of a sequence: takes a decoder from the cache, or reconfigures one
//   on_decode    a coded picture: decodes it
//   on_display   a decoded picture, in the order of display: maps it and delivers it
//
// on_display must map the picture before it returns: the parser may decode the next picture into
// the same memory. A mapped picture is a copy in one of a few output surfaces:
//
//   free --map--> mapped --consumer enqueues work, an event is recorded--> in use
//        <--unmap, once the event has passed--
//
// If the event cannot be awaited because the device has failed, the surface and the decoder are
// abandoned: never unmapped or destroyed.
//
// One thread at a time. settle() must be awaited before the destructor, which otherwise abandons
// the decoder.
class surface_decoder {
 public:
  surface_decoder(std::shared_ptr<decoder_sessions> sessions, const media::stream_info& from,
                  const stream& on, const surface_options& options, surface_consumer& to);
  surface_decoder(const surface_decoder&) = delete;
  ~surface_decoder();

  // The next packet must be a key frame, with which decoding starts.
  void begin();

  // Decodes a packet. Throws error(unsupported) if NVDEC cannot decode the stream, and
  // error(invalid_data) if it reports damage.
  void send(const media::packet& next);

  // Delivers the pictures that the parser holds back for reordering.
  void finish();

  // Waits until the next picture can be mapped.
  task<> wait_for_surface();

  // Waits until no picture is mapped, and returns the decoder to the cache. Cancellation does not
  // end the wait. Throws error if the device has failed.
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

  int begin_sequence(const CUVIDEOFORMAT& sequence);
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
  bool is_reusable_ = true;            // the decoder may go back to the cache
  surface shown_;                      // the fields that all surfaces of the sequence share
  std::deque<mapped_surface> mapped_;  // in the order of their events
  std::vector<event> spare_;           // events to use again
  std::exception_ptr failed_;          // thrown in a callback; must not pass through C code
};

}  // namespace lade::cuda
