// Clips of videos, decoded into memory of a GPU that the caller has.

#pragma once

#include "known_colours.hpp"

#include <lade/cuda/device.hpp>
#include <lade/cuda/memory.hpp>
#include <lade/cuda/nvdec/decode_clip.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/media/av/clip.hpp>
#include <lade/media/av/video.hpp>
#include <lade/random.hpp>
#include <lade/sample.hpp>
#include <lade/task.hpp>
#include <lade/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lade::cuda::detail {

// What decode_clip and decode_clips share. Its coroutines run on the CPU pool of a runtime; it must
// outlive them. Any thread.
class clip_decoder {
 public:
  // Throws as the constructor of decode_clip does.
  clip_decoder(const media::clip_options& options, const gpu_clip_options& gpu_options);

  const media::decode_clip& cpu() const noexcept { return cpu_; }
  device on() const noexcept { return on_; }
  device_resource& memory() const { return static_cast<device_resource&>(*memory_); }
  clip_statistics stats() const;
  std::size_t key_frames_for_colours() const { return colours_.decoded(); }  // by the CPU

  // The video of a sample, and the frames of its clips. Advances `draw`. Throws as
  // media::decode_clip does.
  std::pair<media::video, std::vector<std::int64_t>> open(const sample& in, random& draw) const;

  // Decodes the frames into `into`, contiguous and of cpu().spec_of(numbers), on a stream that may
  // use it. Returns whether the GPU has decoded them. The clip is complete then: the stream has
  // passed all work. After an error, the stream may still have some.
  task<bool> write(const media::video& from, const std::vector<std::int64_t>& numbers, random draw,
                   const tensor& into, const stream& on);

  // Streams are used by one clip after another: to make one takes longer than to decode a frame.
  // All work of a stream that is given back must have finished.
  stream take_stream();
  void give_back(const stream& used);

 private:
  task<std::string> try_gpu(const media::video& from, const std::vector<std::int64_t>& numbers,
                            random draw, const tensor& into, const stream& on) const;
  task<> decode_on_gpu(const media::video& from, const std::vector<std::int64_t>& numbers,
                       random draw, const tensor& into, const stream& on) const;
  task<> decode_frames(const media::clip_options& options, const media::video& from,
                       const std::vector<std::int64_t>& numbers, random draw, const tensor& into,
                       const stream& on) const;
  task<> decode_on_cpu(const media::video& from, const std::vector<std::int64_t>& numbers,
                       random draw, const tensor& into, const stream& on) const;
  void count(bool by_gpu, std::string_view reason);

  const media::clip_options options_;  // without texts
  const media::decode_clip cpu_;
  const int surfaces_;
  const device on_;
  const std::shared_ptr<memory_resource> memory_;
  mutable known_colours colours_;
  mutable std::mutex mutex_;  // guards all that follows
  std::vector<stream> idle_;
  clip_statistics counted_;
};

// Throws error(no_runtime) outside of a runtime.
void require_clip_runtime(const context& current);

}  // namespace lade::cuda::detail
