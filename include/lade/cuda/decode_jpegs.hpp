// decode_jpegs: decodes batches of samples whose data are JPEG files into batches in device memory.

#pragma once

#include <lade/cuda/device_batch.hpp>
#include <lade/cuda/image_batch.hpp>
#include <lade/cuda/jpeg_decoder.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/failure.hpp>
#include <lade/sample.hpp>
#include <lade/task.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lade::cuda {

struct decode_jpegs_options {
  // Policy for samples that cannot be decoded: `fail` fails their batch, `skip` delivers it without
  // them.
  lade::on_error on_error = lade::on_error::fail;
};

struct decode_jpegs_statistics {
  std::uint64_t skipped = 0;              // samples missing from delivered batches
  std::vector<std::string> reasons = {};  // errors of the first 16, which name the samples
};

// A function for a map over batches of samples: decodes, crops, resizes and normalises on the GPU.
//
//   lade::cuda::jpeg_decoder decoder(lade::cuda::device(0), decode_on_cpu);
//   auto batches = files | lade::map(lade::io::read)
//                | lade::batch(256)
//                | lade::map(lade::cuda::decode_jpegs(decoder, {.width = 224, .height = 224}));
//
// A batch has one tensor, "data", with the size and type of `to`, whose `data`, `images` and `gpu`
// are not used. Labels become a tensor if a sample has one. Keys and fields stay in host memory.
// The batch is complete when the stage delivers it. Its memory returns to its resource when all
// streams passed to wait_on() have finished their queued work.
//
// By default, two batches are in flight. If map_options::concurrency exceeds
// jpeg_decoder_options::batches, further batches wait.
//
// A sample that cannot be decoded fails its batch, with an error that names the sample, or is
// skipped:
//
//   lade::cuda::decode_jpegs decode(decoder, to, {}, {.on_error = lade::on_error::skip});
//
// - Tensors, labels and samples() then have the remaining samples, in order.
// - A batch fails if all its samples fail.
// - stats() counts skipped samples. They are not in run.failures(), do not count to an error
//   budget, and are not retried: the policies of the stage and the run apply to whole batches.
// - A lost device always ends the run.
//
// Copies share the statistics.
//
// Not yet run on a GPU: tested only with a fake driver, nvJPEG and kernels.
class decode_jpegs {
 public:
  static constexpr unsigned default_concurrency = 2;

  // Returns the view of a sample's image with that size, for example a random crop and flip. Called
  // on threads of the runtime, concurrently for different batches. An exception fails the sample.
  using view_of = std::function<image_view(const sample& of, int width, int height)>;

  // Without `views`, whole images are resized. Throws error: invalid_argument for an invalid `to`,
  // unsupported for other element types, and errors of the device.
  decode_jpegs(jpeg_decoder decoder, const image_batch& to, view_of views = {},
               const decode_jpegs_options& options = {});

  // Throws error(invalid_argument) if a sample has not been read, if there are no samples, or if
  // the decoder is planar. Otherwise throws as jpeg_decoder::decode() does.
  task<device_batch> operator()(std::vector<sample> samples) const;

  decode_jpegs_statistics stats() const;

 private:
  struct skips;

  static task<device_batch> decode(decode_jpegs self, std::vector<sample> samples);

  jpeg_decoder decoder_;
  image_batch to_;
  view_of views_;
  decode_jpegs_options options_;
  std::shared_ptr<skips> skips_;
  stream copying_labels_;
};

}  // namespace lade::cuda
