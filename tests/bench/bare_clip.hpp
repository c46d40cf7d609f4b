// The floor's way to some frames of a video: as few are decoded as possible. For files with an
// index, closed groups of pictures and a constant frame rate only.

#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "bare_av.hpp"
#include "media.hpp"

extern "C" {
#include <libswscale/swscale.h>
}

namespace bench {

// Frames of a video by their index in the order of display. In closed groups, the index of a key
// frame is the same in decoding order, which is that of the file's index.
class bare_clip {
 public:
  explicit bare_clip(const std::string& path)
      : stream_(path, AVMEDIA_TYPE_VIDEO), decoder_(stream_.get()) {
    for (std::size_t i = 0; i < frames(); ++i)
      if ((entry(i)->flags & AVINDEX_KEYFRAME) != 0) keys_.push_back(i);
    keys_.push_back(frames());
    ticks_ = entry(1)->timestamp - entry(0)->timestamp;
  }

  std::size_t frames() const {
    return static_cast<std::size_t>(avformat_index_get_entries_count(stream_.get()));
  }

  // Calls `use(i, frame)` for each of the sorted indices `wanted[i]`.
  template <class F>
  void decode(std::span<const std::size_t> wanted, F use) {
    for (std::size_t done = 0; done < wanted.size();) {
      auto next_key = std::upper_bound(keys_.begin(), keys_.end(), wanted[done]);
      auto end = std::lower_bound(wanted.begin(), wanted.end(), *next_key);
      auto count = static_cast<std::size_t>(end - wanted.begin()) - done;
      decode_group(*(next_key - 1), wanted.subspan(done, count),
                   [&](std::size_t i, const AVFrame& frame) { use(done + i, frame); });
      done += count;
    }
  }

  // The bytes of the packets that must be read for these frames of one group.
  std::size_t packet_bytes(std::span<const std::size_t> wanted) {
    std::size_t bytes = 0;
    walk(*(std::upper_bound(keys_.begin(), keys_.end(), wanted[0]) - 1), wanted,
         [&](const AVPacket& packet, bool) { bytes += static_cast<std::size_t>(packet.size); });
    return bytes;
  }

 private:
  const AVIndexEntry* entry(std::size_t i) const {
    return avformat_index_get_entry(stream_.get(), static_cast<int>(i));
  }

  // Calls `use(packet, is_wanted)` from a key frame to the last wanted packet.
  template <class F>
  void walk(std::size_t key, std::span<const std::size_t> wanted, F use) {
    stream_.seek(static_cast<std::int64_t>(key) * ticks_);
    for (std::size_t left = wanted.size(); left > 0;) {
      const AVPacket* packet = stream_.next();
      if (packet == nullptr) fail("the file ends before the clip");
      auto index = static_cast<std::size_t>(packet->pts / ticks_);
      bool is_wanted = std::binary_search(wanted.begin(), wanted.end(), index);
      use(*packet, is_wanted);
      left -= is_wanted;
    }
  }

  // No frame refers to those that are discarded. Behind the last wanted packet, the decoder hands
  // over what it holds back for the order of display, and begins anew.
  template <class F>
  void decode_group(std::size_t key, std::span<const std::size_t> wanted, F use) {
    auto pick = [&](const AVFrame& frame) {
      auto index = static_cast<std::size_t>(frame.pts / ticks_);
      auto found = std::lower_bound(wanted.begin(), wanted.end(), index);
      if (found != wanted.end() && *found == index)
        use(static_cast<std::size_t>(found - wanted.begin()), frame);
    };
    walk(key, wanted, [&](const AVPacket& packet, bool is_wanted) {
      decoder_.get()->skip_frame = is_wanted ? AVDISCARD_DEFAULT : AVDISCARD_NONREF;
      decoder_.decode(&packet, pick);
    });
    decoder_.decode(nullptr, pick);
    avcodec_flush_buffers(decoder_.get());
  }

  av_stream stream_;
  av_decoder decoder_;
  std::vector<std::size_t> keys_;  // and the number of frames
  std::int64_t ticks_ = 0;         // of a frame; the first one is displayed at 0
};

// swscale's bilinear conversion of frames of one kind to 224x224 RGB.
class bare_scaler {
 public:
  bare_scaler() = default;
  ~bare_scaler() { sws_freeContext(context_); }
  bare_scaler(const bare_scaler&) = delete;
  bare_scaler& operator=(const bare_scaler&) = delete;

  // Packed, as HWC.
  void to_packed(const AVFrame& frame, std::uint8_t* out) {
    convert(frame, AV_PIX_FMT_RGB24, {out}, {3 * side});
  }
  // In planes, as CHW.
  void to_planes(const AVFrame& frame, std::uint8_t* out) {
    constexpr std::size_t plane = clip_side * clip_side;
    convert(frame, AV_PIX_FMT_GBRP, {out + plane, out + 2 * plane, out}, {side, side, side});
  }

 private:
  static constexpr int side = clip_side;

  void convert(const AVFrame& frame, AVPixelFormat to, std::array<std::uint8_t*, 4> out,
               std::array<int, 4> strides) {
    context_ = sws_getCachedContext(context_, frame.width, frame.height,
                                    static_cast<AVPixelFormat>(frame.format), side, side, to,
                                    SWS_BILINEAR, nullptr, nullptr, nullptr);
    if (context_ == nullptr) fail("swscale refuses the frames");
    sws_scale(context_, frame.data, frame.linesize, 0, frame.height, out.data(), strides.data());
  }

  SwsContext* context_ = nullptr;
};

}  // namespace bench
