// decode_clips: decodes batches of samples whose data are videos into batches of clips in device
// memory.

#pragma once

#include <lade/cuda/device_batch.hpp>
#include <lade/cuda/nvdec/decode_clip.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/random.hpp>
#include <lade/sample.hpp>
#include <lade/task.hpp>

#include <memory>
#include <vector>

namespace lade::cuda {

// A function for a map over batches of samples: decodes the clip of each video into its slot of one
// tensor, as decode_clip does, with the same options.
//
//   auto batches = files | lade::map(lade::io::read)
//                | lade::batch(32)
//                | lade::map(lade::cuda::decode_clips({.width = 224, .height = 224}));
//
// A batch has one tensor of [32, 16, 224, 224, 3], named "data" or after clip_options::field.
// Labels become a tensor if a sample has one. Keys and other fields stay in host memory; the bytes
// of the videos are removed. The batch is complete when the stage delivers it. Its memory returns
// to its resource after the work of the streams of wait_on().
//
// Each clip has separate random numbers. They depend on the position of the batch in the run and of
// the sample in its batch.
//
// Concurrency: the clips of a batch are decoded in parallel. Their number is the larger of two:
// twice the engines of the GPU, and the threads of the CPU pool. By default, two batches are in
// flight.
//
// A sample that neither the GPU nor the CPU can decode fails its batch, with an error that names
// the sample. No further clips of the batch are started then. A failure of the device ends the run.
//
// Copies share the statistics and the memory. Any thread, in a runtime.
//
// Not yet run on a GPU: tested only with a fake driver.
class decode_clips {
 public:
  static constexpr unsigned default_concurrency = 2;

  // Throws as the constructor of decode_clip does, and error(invalid_argument) for
  // clip_end::shorten, because such clips have no slot.
  explicit decode_clips(const media::clip_options& options, const gpu_clip_options& how = {});

  // Spec of one clip.
  const tensor_spec& spec() const noexcept;
  bool is_random() const noexcept;

  // Throws error(invalid_argument) for a sample that has not been read, and for no samples;
  // otherwise as decode_clip does.
  task<device_batch> operator()(std::vector<sample> samples, random draw = {}) const;

  clip_statistics stats() const;

 private:
  static task<device_batch> decode(decode_clips self, std::vector<sample> samples, random draw);

  std::shared_ptr<detail::clip_decoder> decoder_;
  stream order_;  // stream of memory and labels
};

}  // namespace lade::cuda
