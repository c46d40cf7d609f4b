// Decodes clips of videos into GPU memory of the caller.

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

// The common part of decode_clip and decode_clips. Its coroutines run on the CPU pool of a runtime.
// It must outlive them. Any thread.
class clip_decoder {
 public:
  // Throws as the constructor of decode_clip does.
  clip_decoder(const media::clip_options& options, const gpu_clip_options& gpu_options);

  const media::decode_clip& cpu() const noexcept { return cpu_; }
  device on() const noexcept { return on_; }
  device_resource& memory() const { return static_cast<device_resource&>(*memory_); }
  clip_statistics stats() const;
  std::size_t key_frames_for_colours() const { return colours_.decoded(); }  // decoded by the CPU

  // Opens the video of a sample, and chooses the frames of its clips. Advances `draw`. Throws the
  // errors of media::decode_clip.
  std::pair<media::video, std::vector<std::int64_t>> open(const sample& in, random& draw) const;

  // Decodes the frames into `into`: contiguous, with the spec cpu().spec_of(numbers), usable on the
  // stream `on`. Returns whether the GPU has decoded them; else the CPU has. The stream has
  // finished all work then. After an exception, it may have work left that writes to `into`.
  task<bool> write(const media::video& from, const std::vector<std::int64_t>& numbers, random draw,
                   const tensor& into, const stream& on);

  // A pool of streams: creating one takes longer than decoding a frame. A returned stream must be
  // idle.
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

  const media::clip_options options_;  // without strings
  const media::decode_clip cpu_;
  const int surfaces_;
  const device on_;
  const std::shared_ptr<memory_resource> memory_;
  mutable known_colours colours_;
  mutable std::mutex mutex_;  // guards the members below
  std::vector<stream> idle_;
  clip_statistics counted_;
};

// Throws error(no_runtime) outside of a runtime.
void require_clip_runtime(const context& current);

}  // namespace lade::cuda::detail
