// A decoder of JPEG images on a GPU, with nvJPEG.

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

// The category of nvJPEG's errors, with messages such as "NVJPEG_STATUS_EXECUTION_FAILED".
const std::error_category& nvjpeg_category() noexcept;

// A part of an image, in pixels. Width 0: the whole image.
struct jpeg_region {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
};

// A file to decode, in host memory.
class jpeg_source {
 public:
  // `name`: the name of the image in errors.
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

// The result of a file: an image in device memory, or the reason why there is none. A share: images
// that the GPU decoded in one batch share their memory, which returns when the last of them is
// destroyed.
class decoded_jpeg {
 public:
  decoded_jpeg(tensor image, device_block memory)
      : image_(std::move(image)), memory_(std::move(memory)) {}
  explicit decoded_jpeg(std::exception_ptr failure) : failure_(std::move(failure)) {}

  // u8 [height, width, 3], or [3, height, width] from a planar decoder: red, green, blue. If there
  // is no image, throws the failure, an error that names the image.
  const tensor& image() const {
    if (failure_) std::rethrow_exception(failure_);
    return image_;
  }

  const std::exception_ptr& failure() const noexcept { return failure_; }  // null if there is none

  // Declares that work of the stream reads the image. The memory returns after all work that is
  // queued when the last share is destroyed. The stream must exist until then. A later batch that
  // is decoded on the same stream as this one also waits for that: slow readers delay the decoder
  // instead of filling the memory. No effect if there is no image. Throws error.
  void use_on(const stream& reader) const {
    if (memory_) memory_->use_on(reader);
  }

  // Declares that work which is queued later on the stream reads neither the image nor others that
  // share its memory. Throws error.
  void record_on(const stream& reader) const {
    if (memory_) memory_->record_on(reader);
  }

 private:
  tensor image_;
  std::optional<device_block> memory_;
  std::exception_ptr failure_;
};

// The view of a decoded image: the part that is resized, and whether it is mirrored.
struct image_view {
  crop_box crop{};
  bool flip = false;  // left to right
};

// Images of one size in device memory, from the files of a batch.
class resized_jpegs {
 public:
  resized_jpegs(tensor images, device_block memory, std::vector<std::exception_ptr> failures)
      : images_(std::move(images)), memory_(std::move(memory)), failures_(std::move(failures)) {}

  // One image for each file without a failure, in the order of the files.
  const tensor& images() const noexcept { return images_; }

  // For each file, null or an error that names the file.
  const std::vector<std::exception_ptr>& failures() const noexcept { return failures_; }

  const device_block& memory() const noexcept { return memory_; }  // memory of the images

 private:
  tensor images_;
  device_block memory_;
  std::vector<std::exception_ptr> failures_;
};

struct jpeg_decoder_options {
  bool planar = false;   // images are [3, height, width]
  bool hardware = true;  // uses the JPEG engines of the GPU, if any
  unsigned batches = 2;  // batches in flight, 1 to 64; each has a stream and nvJPEG's memory
  std::int64_t max_pixels = 89'478'485;  // of an image, 1 to 2^32; the CPU decodes larger ones

  // Bytes of pinned memory that nvJPEG may keep between batches, for all batches in flight. If it
  // holds more when a batch is complete, the memory of that batch is freed. Allocating it again
  // takes milliseconds.
  std::size_t keep_pinned_bytes = std::size_t{1} << 30;

  // The resource of the images; null: the default pool of the device (device_memory). Lifetime: see
  // memory_resource.hpp.
  device_resource* memory = nullptr;
};

// Decodes batches of JPEG files on a GPU:
//
//   lade::cuda::jpeg_decoder decoder(lade::cuda::device(0), decode_on_cpu);
//   auto images = co_await decoder.decode(std::move(files));
//   use(images[0].image());  // it is complete: any stream may read it
//
// Division of work:
// - The GPU's JPEG engines decode baseline images, if the GPU has engines.
// - Its other units, supported by the awaiting thread, decode progressive images, and all images
//   if there are no engines. For fewer than 50 images in a batch, nvJPEG then decodes the Huffman
//   codes on that thread, so several batches in flight use several threads.
// - The CPU's decoder is called for all others: other formats, CMYK, RGB, 12 bits, arithmetic and
//   lossless coding, unusual subsampling, more than `max_pixels` pixels; images with an
//   orientation in Exif or XMP that nvJPEG ignores; and damaged images, including images on which
//   nvJPEG fails while the device still works. stats() counts the reasons.
//
// Pixels differ from those of libjpeg-turbo, because nvJPEG computes the transform and the
// interpolation of chroma differently. A test allows a mean difference of 1 level of 256, and more
// than 8 levels for one value of 1000. JPEG has no checksums: some damage only changes pixels, and
// nvJPEG does not detect everything that libjpeg-turbo warns of.
//
// The first decoder loads nvJPEG: libnvjpeg.so.13 or .12, of version 12.1 or newer, which the
// dynamic loader must find (LD_LIBRARY_PATH).
//
// Copies refer to the same decoder. Thread: any, concurrently.
//
// Not yet run on a GPU: tested only with a fake driver and a fake nvJPEG.
class jpeg_decoder {
 public:
  // Decodes the bytes of a file to u8 [height, width, 3] in host memory, turned upright. Called on
  // threads of the runtime, concurrently. With the module `media`:
  //
  //   lade::tensor decode_on_cpu(const lade::buffer& file) {
  //     static const lade::media::decode_image decode;
  //     return decode(lade::sample("file").with_data(file));
  //   }
  using cpu_decoder = std::function<tensor(const buffer& file)>;

  // `others`: the decoder for images that the GPU does not decode; if empty, these images fail.
  //
  // Blocks while nvJPEG starts, up to some hundred milliseconds. Throws error: unsupported if there
  // is no nvJPEG, invalid_argument for memory of another device or invalid options.
  explicit jpeg_decoder(device on, cpu_decoder others = {},
                        const jpeg_decoder_options& options = {});

  // Returns the results in the order of the files. The images are complete: the GPU has written
  // them. Images that the GPU decoded share one allocation. It is reused when the last of them is
  // destroyed, after the work of the streams of decoded_jpeg::use_on(). Other streams must have
  // finished reading by then.
  //
  // If `batches` batches are in flight, further calls wait. A stop ends that wait and prevents
  // calls of the CPU's decoder. Work of the GPU is always awaited, because it writes the images.
  //
  // An image that cannot be decoded fails alone. Throws error(stopped), error(no_runtime) outside
  // of a runtime, and error if the whole batch fails: no memory, or a failure of the device.
  task<std::vector<decoded_jpeg>> decode(std::vector<jpeg_source> files) const;

  // Returns the view of file `index`, whose image has that size in pixels. Called on threads of the
  // runtime, one call at a time for a batch. An exception fails the image.
  using view_of = std::function<image_view(std::size_t index, int width, int height)>;

  // Decodes files and writes views of the images to a batch, by write_images() on the same stream:
  // cropped, mirrored, resized and normalised. `to`: the size and type of the batch; its `data`,
  // `images` and `gpu` are not used. Without `views`, whole images are resized. The full images
  // need memory until then.
  //
  // Otherwise as decode(). An image that write_images() refuses, such as one that shrinks by more
  // than 100, fails alone. Throws error(invalid_argument) for a planar decoder, an invalid `to`,
  // and no files; error(unsupported) for other element types.
  task<resized_jpegs> decode(std::vector<jpeg_source> files, image_batch to,
                             view_of views = {}) const;

  // Number of images by decoder. Failed images count as well.
  struct statistics {
    std::uint64_t hardware = 0;     // decoded by JPEG engines
    std::uint64_t gpu = 0;          // decoded by the other units
    std::uint64_t unsupported = 0;  // decoded by the CPU: an unsupported format or kind
    std::uint64_t rotated = 0;      // decoded by the CPU: an orientation
    std::uint64_t damaged = 0;      // decoded by the CPU: damage
    std::uint64_t failed = 0;       // not decoded; also counted above
    std::size_t pinned_bytes = 0;   // pinned memory of nvJPEG
  };
  statistics stats() const noexcept;

  // Whether the GPU has JPEG engines that the decoder uses.
  bool has_hardware() const noexcept;

  device on() const noexcept;
  device_resource& memory() const noexcept;  // resource of the images

 private:
  struct state;

  std::shared_ptr<state> state_;
};

}  // namespace lade::cuda
