// A pool of open decoders.

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

// Throws error(invalid_argument) if no decoder can use the options, error(unsupported) if FFmpeg
// lacks the decoder.
void check_decode_options(const decode_options& options, std::string_view doing);

// Owns a decoder's context. The destructor flushes it and returns it to the pool, unless discard()
// was called or a flush does not reset the codec. One thread at a time.
class pooled_codec {
 public:
  // Returns an idle context with the same parameters and options, or opens one. Throws the errors
  // of the constructor of decoder. `doing`: the operation, for errors.
  static pooled_codec acquire(const AVCodecParameters& parameters, const decode_options& options,
                              const AVRational& time_base, std::string_view doing);

  pooled_codec(pooled_codec&& other) noexcept = default;
  pooled_codec& operator=(pooled_codec&&) = delete;
  ~pooled_codec();

  AVCodecContext* operator->() const noexcept { return context_.get(); }
  AVCodecContext* get() const noexcept { return context_.get(); }

  // Must be called before each call of FFmpeg with the context.
  void enter() const {
    if (memory_) memory_->enter();
  }

  // Call after an error, or a change that a flush does not undo: the context is then freed.
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

  std::unique_ptr<thread_memory> memory_;  // used by `context_`; must outlive it
  av_codec_context context_;
  std::string key_;  // parameters and options with which it was opened, as bytes
  bool reusable_;
};

}  // namespace lade::media
