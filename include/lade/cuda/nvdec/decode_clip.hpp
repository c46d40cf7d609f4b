// Clips of videos, decoded by the GPU into its memory.

#pragma once

#include <lade/byte_reader.hpp>
#include <lade/cuda/memory.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/media/av/clip.hpp>
#include <lade/random.hpp>
#include <lade/sample.hpp>
#include <lade/task.hpp>
#include <lade/tensor.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace lade::cuda {

namespace detail {
class clip_decoder;
}

struct gpu_clip_options {
  int device = 0;

  // Number of pictures of a video that may be in use at a time; see surface_options.
  int surfaces = 4;

  // The resource of clips; null: a dedicated device_memory. Lifetime: see device_block.
  device_resource* memory = nullptr;
};

// A clip in the memory of a GPU. It is complete: any stream may read it. A share: the memory
// returns when the last copy is destroyed.
class device_clip {
 public:
  device_clip(tensor frames, device_block memory, bool by_gpu)
      : frames_(std::move(frames)), memory_(std::move(memory)), by_gpu_(by_gpu) {}

  const tensor& frames() const noexcept { return frames_; }
  bool is_decoded_by_gpu() const noexcept { return by_gpu_; }

  // Declares that work of the stream reads the clip. The memory returns after all work that is
  // queued when the last copy is destroyed. The stream must exist until then.
  void use_on(const stream& reader) const { memory_.use_on(reader); }

 private:
  tensor frames_;
  device_block memory_;
  bool by_gpu_;
};

struct clip_statistics {
  std::uint64_t by_gpu = 0;  // clips decoded by the GPU
  std::uint64_t by_cpu = 0;  // clips decoded by the CPU
  std::string reason = {};   // why the CPU decoded the first such clip
};

// A function for map that decodes clips as media::decode_clip does: with the same options, the same
// frames, and the same crops for equal draws.
//
//   ... | lade::map(lade::io::read)
//       | lade::map(lade::cuda::decode_clip({.width = 224, .height = 224}), {.concurrency = 14})
//
// NVDEC decodes, and a kernel crops, resizes and converts each frame, without waiting for the
// stream. For clip_layout::cthw, another kernel changes the layout of the whole clip, which needs
// the memory of the clip twice.
//
// Videos that the GPU cannot decode are decoded by the CPU, to pinned memory of the runtime, and
// copied to the GPU. These are: codings and sizes that the GPU does not support, videos that must
// be turned, damage, and files whose frames cannot be identified by their times. `stats()` counts
// them.
//
// Pixels differ by at most one level from the CPU's. FFmpeg's decoder determines the coding of
// colours: the CPU decodes the first key frame that a clip needs, for H.264, HEVC, VP9 and AV1 once
// for all videos with equal headers. Damage that NVDEC conceals is not detected. `decoding.decoder`
// and `decoding.options` apply only to the CPU's decoder.
//
// Concurrency: twice the number of engines keeps a GPU busy. Each call holds a session of an engine
// while it decodes.
//
// Copies share the statistics and the memory. Any thread, in a runtime.
//
// Not yet run on a GPU: tested only with a fake driver.
class decode_clip {
 public:
  // Throws as media::decode_clip does. Throws error(invalid_argument) for `surfaces` that are not 1
  // to 16 and for memory of another GPU. Throws error(unsupported) for a colour other than RGB and
  // BGR, and error if the GPU does not exist. A GPU without NVDEC is not an error: the CPU decodes.
  explicit decode_clip(const media::clip_options& options, const gpu_clip_options& how = {});

  std::string_view field() const noexcept;
  const tensor_spec& spec() const noexcept;
  bool is_random() const noexcept;

  // Decodes the sample's data, or its field. Throws as media::decode_clip does for a video that the
  // CPU cannot decode either, error if the device fails, and error(stopped).
  task<device_clip> operator()(const sample& in, random draw = {}) const;

  // The same for a video that is read by ranges.
  task<device_clip> read(std::shared_ptr<const byte_reader> from, random draw = {}) const;

  clip_statistics stats() const;

 private:
  using shared_decoder = std::shared_ptr<detail::clip_decoder>;

  static task<device_clip> decode_sample(shared_decoder decoder, sample in, random draw);
  static task<device_clip> decode_reader(shared_decoder decoder,
                                         std::shared_ptr<const byte_reader> from, random draw);
  static task<device_clip> decode_video(shared_decoder decoder, media::video from,
                                        std::vector<std::int64_t> numbers, random draw);

  shared_decoder decoder_;
};

}  // namespace lade::cuda
