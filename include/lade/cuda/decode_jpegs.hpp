// decode_jpegs: samples whose data are JPEG files become batches in device memory.

#pragma once

#include <lade/cuda/device_batch.hpp>
#include <lade/cuda/image_batch.hpp>
#include <lade/cuda/jpeg_decoder.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/sample.hpp>
#include <lade/task.hpp>

#include <functional>
#include <utility>
#include <vector>

namespace lade::cuda {

// A function of a map over batches of samples: decodes, crops, resizes and normalises on the GPU.
//
//   lade::cuda::jpeg_decoder decoder(lade::cuda::device(0), decode_on_cpu);
//   auto batches = files | lade::map(lade::io::read())
//                | lade::batch(256)
//                | lade::map(lade::cuda::decode_jpegs(decoder, {.width = 224, .height = 224}));
//
// A batch is one tensor, "data", of the kind `to`, whose `data` is not used; labels become a
// tensor if a sample has one; keys and fields travel along in host memory. It is complete when the
// stage gives it. Its memory returns to its resource behind the streams of wait_on().
//
// Two batches are decoded at a time if the map does not say otherwise. More than
// jpeg_decoder_options::batches wait for each other.
//
// A sample that cannot be decoded fails its batch, with an error that names it.
//
// Not yet run on a GPU: tested over a driver, an nvJPEG and kernels that a test replaces.
class decode_jpegs {
 public:
  static constexpr unsigned default_concurrency = 2;

  // The view of a sample's image of that size: random crops and flips, for instance. Called on
  // threads of the runtime, several at a time for different batches.
  using view_of = std::function<image_view(const sample& of, int width, int height)>;

  // Without `views`, whole images are resized. Throws error.
  decode_jpegs(jpeg_decoder decoder, const image_batch& to, view_of views = {})
      : decoder_(std::move(decoder)),
        to_(to),
        views_(std::move(views)),
        copying_labels_(decoder_.on()) {}

  // Throws error(invalid_argument) if a sample has not been read, or there are none.
  task<device_batch> operator()(std::vector<sample> samples) const;

 private:
  static task<device_batch> decode(decode_jpegs self, std::vector<sample> samples);

  jpeg_decoder decoder_;
  image_batch to_;
  view_of views_;
  stream copying_labels_;
};

}  // namespace lade::cuda
