// Decoding of JPEG images on a GPU, by nvJPEG.

#pragma once

#include <lade/buffer.hpp>
#include <lade/cuda/device.hpp>
#include <lade/cuda/image_batch.hpp>
#include <lade/cuda/memory.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/task.hpp>
#include <lade/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace lade::cuda {

// The category of nvJPEG's errors. A message is "NVJPEG_STATUS_EXECUTION_FAILED".
const std::error_category& nvjpeg_category() noexcept;

// A part of an image, in pixels. Width 0: the whole image.
struct jpeg_region {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
};

// A file to decode, whose bytes are in host memory.
class jpeg_source {
 public:
  // `name` is what errors call the image.
  explicit jpeg_source(buffer file, std::string name = {}, const jpeg_region& part = {})
      : file_(std::move(file)), name_(std::move(name)), part_(part) {}

  const buffer& file() const noexcept { return file_; }
  const std::string& name() const noexcept { return name_; }
  const jpeg_region& part() const noexcept { return part_; }

 private:
  buffer file_;
  std::string name_;
  jpeg_region part_;
};

// What has become of a file: an image in device memory, or why there is none. A share: images that
// the GPU has decoded in one batch share their memory, which returns when the last one is
// destroyed.
class decoded_jpeg {
 public:
  decoded_jpeg(tensor image, device_block memory)
      : image_(std::move(image)), memory_(std::move(memory)) {}
  explicit decoded_jpeg(std::exception_ptr failure) : failure_(std::move(failure)) {}

  // u8 [height, width, 3], or [3, height, width] of a planar decoder: red, green, blue. Throws the
  // failure, an error that names the image, if there is one.
  const tensor& image() const {
    if (failure_) std::rethrow_exception(failure_);
    return image_;
  }

  const std::exception_ptr& failure() const noexcept { return failure_; }  // null if there is none

  // Work of the stream reads the image: its memory returns when the stream has passed what is
  // queued when the last share is destroyed. The stream must exist until then. A batch that is
  // decoded later on the same stream as this one waits for that, too: images that are read slowly
  // hold up the decoder instead of filling the memory. Nothing happens if there is no image. Throws
  // error.
  void use_on(const stream& reader) const {
    if (memory_) memory_->use_on(reader);
  }

  // Work that is queued on the stream from now on does not read the image, nor others that share
  // its memory. Throws error.
  void record_on(const stream& reader) const {
    if (memory_) memory_->record_on(reader);
  }

 private:
  tensor image_;
  std::optional<device_block> memory_;
  std::exception_ptr failure_;
};

// What becomes of a decoded image: the part that is resized, and whether it is mirrored.
struct image_view {
  crop_box crop{};
  bool flip = false;  // left to right
};

// Images of one size in device memory, made of the files of a batch.
class resized_jpegs {
 public:
  resized_jpegs(tensor images, device_block memory, std::vector<std::exception_ptr> failures)
      : images_(std::move(images)), memory_(std::move(memory)), failures_(std::move(failures)) {}

  // One image for each file without a failure, in the order of the files.
  const tensor& images() const noexcept { return images_; }

  // For each file, an error that names it, or null.
  const std::vector<std::exception_ptr>& failures() const noexcept { return failures_; }

  const device_block& memory() const noexcept { return memory_; }  // of the images

 private:
  tensor images_;
  device_block memory_;
  std::vector<std::exception_ptr> failures_;
};

struct jpeg_decoder_options {
  bool planar = false;   // images are [3, height, width]
  bool hardware = true;  // use the JPEG engines of GPUs that have some
  unsigned batches = 2;  // decoded at the same time; each has a stream, and nvJPEG's memory
  std::int64_t max_pixels = 89'478'485;  // of an image; larger ones go to the CPU's decoder

  // Bytes of pinned memory that nvJPEG may keep between batches, for all batches in flight. If it
  // holds more when a batch is complete, it frees the memory of that batch; allocating it again
  // takes milliseconds.
  std::size_t keep_pinned_bytes = std::size_t{1} << 30;

  // Where the memory of images comes from; null: the default pool of the device (device_memory).
  // Lifetime: see memory_resource.hpp.
  device_resource* memory = nullptr;
};

// Decodes batches of JPEG files on a GPU:
//
//   lade::cuda::jpeg_decoder decoder(lade::cuda::device(0), decode_on_cpu);
//   auto images = co_await decoder.decode(std::move(files));
//   use(images[0].image());  // it is complete: any stream may read it
//
// Which images:
// - The GPU's JPEG engines decode baseline images, where there are engines.
// - Its other units, helped by the awaiting thread, decode progressive images, and all images
//   where there are no engines. Below 50 images in a batch, nvJPEG then decodes the Huffman codes
//   on that thread: several batches at a time use several threads.
// - The CPU's decoder is called for all others: other formats, CMYK, RGB, 12 bits, arithmetic and
//   lossless coding, unusual subsampling, more than `max_pixels` pixels; images that are to be
//   rotated or mirrored (orientation in Exif or XMP), which nvJPEG leaves as they are; and damaged
//   images, among which are those that make nvJPEG fail while the device goes on. stats() counts
//   why.
//
// Pixels differ from those of libjpeg-turbo, since nvJPEG computes the transform and the
// interpolation of chroma otherwise. A test allows a mean difference of 1 level of 256, and more
// than 8 levels for one value of 1000. JPEG has no checksums: some damage changes pixels and
// nothing else, and nvJPEG does not notice all that libjpeg-turbo warns of.
//
// nvJPEG is loaded when the first decoder is made: libnvjpeg.so.13 or .12, of version 12.1 or
// newer, which must be where the loader finds it (LD_LIBRARY_PATH).
//
// Copies refer to the same decoder. Thread: any, several at a time.
//
// Not yet run on a GPU: tested over a driver and an nvJPEG that a test replaces.
class jpeg_decoder {
 public:
  // Decodes the bytes of a file to u8 [height, width, 3] in host memory, turned as its orientation
  // says. Called on threads of the runtime, several at a time. With the module `media`:
  //
  //   lade::tensor decode_on_cpu(const lade::buffer& file) {
  //     static const lade::media::decode_image decode;
  //     return decode(lade::sample("file").with_data(file));
  //   }
  using cpu_decoder = std::function<tensor(const buffer& file)>;

  // `others`: the decoder for images that the GPU does not decode; without one, they fail.
  //
  // Blocks while nvJPEG starts, up to some hundred milliseconds. Throws error: unsupported if
  // there is no nvJPEG, invalid_argument for other memory or options that cannot work.
  explicit jpeg_decoder(device on, cpu_decoder others = {},
                        const jpeg_decoder_options& options = {});

  // Results in the order of the files. The images are complete: the GPU has written them. Those
  // that it decoded share one allocation, which lives as long as one of them. It is used again when
  // the last of them is destroyed, behind the streams of decoded_jpeg::use_on(). Other streams must
  // have passed the work that reads it.
  //
  // While `batches` are being decoded, others wait. A stop ends that wait, and keeps the CPU's
  // decoder from being called; work of the GPU is always awaited, since it writes the images.
  //
  // An image that cannot be decoded fails alone. Throws error(stopped); error(no_runtime) outside
  // of a runtime; and error if the batch has failed: no memory, or a failure of the device.
  task<std::vector<decoded_jpeg>> decode(std::vector<jpeg_source> files) const;

  // The view of file `index`, whose image has that size. Called on threads of the runtime, one
  // call at a time for a batch. What it throws fails the image.
  using view_of = std::function<image_view(std::size_t index, int width, int height)>;

  // Decodes files and writes views of the images to a batch, by write_images() on the same stream:
  // cropped, mirrored, resized and normalised. `to`: the kind of the batch; its `data`, `images`
  // and `gpu` are not used. Without `views`, whole images are resized. The full images need memory
  // until then.
  //
  // Otherwise as decode(). An image that write_images() refuses, such as one that shrinks by more
  // than 100, fails alone. Throws error(invalid_argument) for a planar decoder, for a `to` that
  // cannot be, and if there are no files; error(unsupported) for other element types.
  task<resized_jpegs> decode(std::vector<jpeg_source> files, image_batch to,
                             view_of views = {}) const;

  // How many images have been decoded, and by whom. Images that failed count as well.
  struct statistics {
    std::uint64_t hardware = 0;     // decoded by JPEG engines
    std::uint64_t gpu = 0;          // decoded by the other units
    std::uint64_t unsupported = 0;  // left to the CPU: a format or kind that the GPU cannot decode
    std::uint64_t rotated = 0;      // ... because of their orientation
    std::uint64_t damaged = 0;      // ... because they are damaged
    std::uint64_t failed = 0;       // not decoded at all; counted above, too
    std::size_t pinned_bytes = 0;   // that nvJPEG has now
  };
  statistics stats() const noexcept;

  // Whether the GPU has JPEG engines that are used.
  bool has_hardware() const noexcept;

  device on() const noexcept;
  device_resource& memory() const noexcept;  // where the memory of images comes from

 private:
  struct state;

  std::shared_ptr<state> state_;
};

}  // namespace lade::cuda
