// A pool of libswresample contexts.

#pragma once

#include <lade/media/av.hpp>

#include <memory>
#include <string_view>
#include <utility>

extern "C" {
#include <libavutil/channel_layout.h>
#include <libavutil/samplefmt.h>
#include <libswresample/swresample.h>
}

namespace lade::media {

// A channel layout that owns its description.
class channel_layout {
 public:
  channel_layout() = default;
  explicit channel_layout(const AVChannelLayout& from) {
    check_av(av_channel_layout_copy(&layout_, &from), "copy a channel layout");
  }
  channel_layout(const channel_layout& from) : channel_layout(from.layout_) {}
  channel_layout(channel_layout&& from) noexcept
      : layout_(std::exchange(from.layout_, AVChannelLayout{})) {}
  channel_layout& operator=(channel_layout from) noexcept {
    std::swap(layout_, from.layout_);
    return *this;
  }
  ~channel_layout() { av_channel_layout_uninit(&layout_); }

  // The usual layout of this many channels; of unknown speakers if there is none.
  static channel_layout usual(int channels) {
    channel_layout result;
    av_channel_layout_default(&result.layout_, channels);
    return result;
  }

  int channels() const noexcept { return layout_.nb_channels; }
  const AVChannelLayout& get() const noexcept { return layout_; }
  AVChannelLayout& get() noexcept { return layout_; }

  friend bool operator==(const channel_layout& a, const channel_layout& b) noexcept {
    return av_channel_layout_compare(&a.layout_, &b.layout_) == 0;
  }

 private:
  AVChannelLayout layout_{};
};

// The format of audio samples.
struct sample_layout {
  int rate = 0;
  AVSampleFormat format = AV_SAMPLE_FMT_NONE;
  channel_layout channels;

  friend bool operator==(const sample_layout&, const sample_layout&) = default;
};

// A context that converts from one format to another, without samples at first. The destructor
// returns it to the pool.
class pooled_swr {
 public:
  // Returns an idle context for equal formats, or a new one. Throws the errors of resampler, with
  // `doing` as the operation.
  static pooled_swr acquire(const sample_layout& from, const sample_layout& to,
                            std::string_view doing);

  pooled_swr(pooled_swr&&) noexcept = default;
  pooled_swr& operator=(pooled_swr&&) = delete;
  ~pooled_swr();

  SwrContext* get() const noexcept { return context_.get(); }

  // Frees all idle contexts.
  static void release_idle() noexcept;

 private:
  struct deleter {
    void operator()(SwrContext* freed) const noexcept { swr_free(&freed); }
  };
  using context_pointer = std::unique_ptr<SwrContext, deleter>;
  struct store;

  pooled_swr(context_pointer context, sample_layout from, sample_layout to) noexcept
      : context_(std::move(context)), from_(std::move(from)), to_(std::move(to)) {}
  static context_pointer new_context(const sample_layout& from, const sample_layout& to,
                                     std::string_view doing);

  context_pointer context_;
  sample_layout from_;
  sample_layout to_;
};

}  // namespace lade::media
