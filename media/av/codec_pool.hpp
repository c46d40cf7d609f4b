// Open decoders that are used by one stream after another.

#pragma once

#include "frame_memory.hpp"

#include <lade/media/av.hpp>
#include <lade/media/av/decoder.hpp>

#include <memory>
#include <string>
#include <string_view>

extern "C" {
#include <libavcodec/avcodec.h>
}

namespace lade::media {

// The most pictures that a codec reorders (ITU-T H.264, A.3.1; H.265, A.4.2).
inline constexpr int most_reordered_pictures = 16;

// Throws error(invalid_argument) for options that no decoder can use, error(unsupported) for a
// decoder that FFmpeg does not have.
void check_decode_options(const decode_options& options, std::string_view doing);

// A decoder's context, and what it was opened with. Returned to the pool by its destructor, unless
// discard() was called or its codec keeps state from one stream to the next.
class pooled_codec {
 public:
  // An idle context for equal parameters and options, or a new one. Throws as the constructor of
  // decoder does; `doing` is the text of its errors.
  static pooled_codec acquire(const AVCodecParameters& parameters, const decode_options& options,
                              const AVRational& time_base, std::string_view doing);

  pooled_codec(pooled_codec&& other) noexcept = default;
  pooled_codec& operator=(pooled_codec&&) = delete;
  ~pooled_codec();

  AVCodecContext* operator->() const noexcept { return context_.get(); }
  AVCodecContext* get() const noexcept { return context_.get(); }

  // Called before each call of FFmpeg for the context.
  void enter() const {
    if (memory_) memory_->enter();
  }

  // After an error, or something that a flush does not undo: the context is not used again.
  void discard() noexcept { reusable_ = false; }

  // Frees all idle contexts.
  static void release_idle() noexcept;

 private:
  struct store;

  pooled_codec(std::unique_ptr<thread_memory> memory, av_codec_context context, std::string key,
               bool reusable) noexcept
      : memory_(std::move(memory)),
        context_(std::move(context)),
        key_(std::move(key)),
        reusable_(reusable) {}

  std::unique_ptr<thread_memory> memory_;  // of `context_`, which it outlives
  av_codec_context context_;
  std::string key_;  // the bytes of all that the context was opened with
  bool reusable_;
};

}  // namespace lade::media
