// Open decoders that are used by one stream after another.

#pragma once

#include <lade/media/av.hpp>
#include <lade/media/av/decoder.hpp>

#include <string>
#include <string_view>

extern "C" {
#include <libavcodec/avcodec.h>
}

namespace lade::media {

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

  // After an error, or something that a flush does not undo: the context is not used again.
  void discard() noexcept { reusable_ = false; }

  // Frees all idle contexts.
  static void release_idle() noexcept;

 private:
  struct store;

  pooled_codec(av_codec_context context, std::string key, bool reusable) noexcept
      : context_(std::move(context)), key_(std::move(key)), reusable_(reusable) {}

  av_codec_context context_;
  std::string key_;  // the bytes of all that the context was opened with
  bool reusable_;
};

}  // namespace lade::media
