// Decoding of images into the slots of a batch: decode, crop, resize and convert in one pass.

#pragma once

#include <lade/byte_reader.hpp>
#include <lade/media/resize.hpp>
#include <lade/random.hpp>
#include <lade/sample.hpp>
#include <lade/task.hpp>
#include <lade/tensor.hpp>
#include <lade/waiting_items.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace lade {
class waiting_samples;
}

namespace lade::media {

struct chosen_crop;  // crop.hpp
struct image_size;

// How an image is fitted to width x height.
enum class image_fit : std::uint8_t {
  stretch,      // the whole image; proportions change
  centre_crop,  // shorter side resized to `shorter_side`, then the centre: for validation
  random_crop,  // a random part of random proportions, flipped at random: for training
  cover,        // the largest centred part with the result's proportions
};

// rgba is for pictures, frames and clips of videos; alpha is opaque if they have none.
enum class image_colour : std::uint8_t { rgb, grey, bgr, rgba };

// The number of channels of a colour.
constexpr int channels_of(image_colour colour) noexcept {
  return colour == image_colour::grey ? 1 : colour == image_colour::rgba ? 4 : 3;
}

struct image_options {
  // The field of a sample that is decoded; its data if empty. Also the name of the tensor in a
  // batch.
  std::string_view field = {};

  // The size of the result in pixels. If both are 0, the image keeps its size.
  int width = 0;
  int height = 0;
  image_fit fit = image_fit::stretch;

  // The field of a sample with the crop of its image, stored by to_tensor (crop.hpp). The crop
  // replaces `fit`, the draw, width and height. Empty: none.
  std::string_view crop_field = {};

  // For centre_crop, as torchvision's Resize and CenterCrop. 0: the larger of width and height,
  // times 256 / 224.
  int shorter_side = 0;

  // For random_crop, as torchvision's RandomResizedCrop and RandomHorizontalFlip: the part's share
  // of the area, its width / height, and the probability of a flip from left to right.
  double min_area = 0.08;
  double max_area = 1;
  double min_aspect = 3.0 / 4;
  double max_aspect = 4.0 / 3;
  double flip = 0.5;

  image_colour colour = image_colour::rgb;
  image_layout layout = image_layout::hwc;
  element_type type = element_type::u8;  // or f16, bf16, f32
  std::array<float, 3> mean{0, 0, 0};    // floats are (x / 255 - mean) / stddev, in the order of
  std::array<float, 3> stddev{1, 1, 1};  // the channels; grey uses the first of each, alpha none

  // Resizes JPEGs before their colours are converted, and decodes large JPEGs at a half, quarter or
  // eighth of their size, where that is faster. The result differs from the exact one by noise of
  // about 50 dB.
  bool fast = false;

  // Turns images upright by the orientation in their Exif data, or in their XMP data if Exif has
  // none. AVIF images are turned by their own orientation properties.
  bool orient = true;

  // For pictures, frames and clips of videos whose pixels are not square: crops have the displayed
  // proportions, and so has the size of the result if none is set.
  bool square_pixels = false;

  // Whether a truncated or damaged JPEG is an error. If not, the result is that of libjpeg. A
  // warning that leaves every pixel intact is not an error, but is counted: see
  // decode_image::warnings. JPEG has no checksums, so some damage only changes pixels.
  bool strict = true;

  // Maximum number of pixels of an image, checked before memory is allocated. The default is
  // Pillow's limit: 256 MiB of RGB.
  std::int64_t max_pixels = 89'478'485;
};

// The counters of a decode_image.
struct image_counts {
  std::atomic<std::uint64_t> warnings = 0;
  std::atomic<std::uint64_t> jpegs_by_libjpeg = 0;
};

// Decodes images into tensors of one spec. Small and copyable. Any number of threads may use it at
// a time; each thread allocates its decoders and scratch memory on first use.
//
// The format is detected by the first bytes, never by the name:
// - JPEG by lade itself if it has sequential Huffman codes of 8 bits in one scan, with one or
//   three components; otherwise, or if damaged, by libjpeg-turbo. Both decode only as far as the
//   crop needs it, and exactly (ISLOW, smooth upsampling: the same pixels as Pillow). Damage
//   outside of the crop may go undetected.
// - TIFF by libtiff: strips and tiles, planes, 1 to 16 bits, grey, RGB, palettes, CMYK, YCbCr,
//   and every compression except old-style JPEG.
// - WebP by libwebp, PNG by FFmpeg.
// - AVIF by libavif, before 1.4 with libaom as its decoder. dav1d is more than twice as fast, but
//   prints the faults of damaged data; it is used if libavif has no other decoder.
// - GIF, BMP and binary PNM by lade itself.
//
// Out of memory: an image fails by std::bad_alloc. If libtiff, libwebp or libavif do not
// distinguish the two, it fails like a damaged image. Some versions of libraries end the process
// instead:
// - libavif 0.11 aborts (avifDecoderCreate and others), libaom 3.6 crashes (aom_codec_destroy).
// - libwebp 1.2.4 crashes with lossless images and alpha (WebPDecodeRGBInto).
// - libtiff 4.5.0 crashes with LZW, Deflate, LZMA, Zstandard, CCITT group 3 (TIFFReadDirectory)
//   and JPEG.
// - glibc 2.36 aborts at the first image of a thread (__cxa_thread_atexit_impl).
//
// Conversion to 8-bit RGB or grey:
// - Alpha and transparency are dropped. Colours that a TIFF has multiplied by alpha are divided
//   by it, at the TIFF's own number of bits.
// - Palettes are looked up.
// - Channels with more than 8 bits keep the upper 8. AVIF is scaled by libavif.
// - CMYK is converted without a colour profile. CMYK JPEGs are assumed to be inverted, as Adobe
//   writes them.
// - Of an animation or a file with many pages, the first image is decoded, on its canvas.
// - Colour profiles are ignored.
// - Grey from colour is a JPEG's luma, and (299 R + 587 G + 114 B) / 1000 for other formats.
class decode_image final {
 public:
  // Throws error(invalid_argument) naming an invalid option.
  explicit decode_image(const image_options& options = {});

  const image_options& options() const noexcept { return options_; }

  // The field that is decoded; empty if it is the sample's data.
  std::string_view field() const noexcept { return options_.field; }

  // The spec of the tensor of an image: u8 [224, 224, 3], f32 [3, 224, 224]. Height and width are 0
  // if images keep their size.
  const tensor_spec& spec() const noexcept { return spec_; }

  // Number of images that this object and its copies decoded despite a decoder's warning: extra
  // bytes between the segments of a JPEG before its first scan, meaningless header fields, and
  // damage if not `strict`. Any thread, at any time.
  std::uint64_t warnings() const noexcept {
    return counts_->warnings.load(std::memory_order_relaxed);
  }

  // Number of JPEGs decoded by libjpeg-turbo, which takes twice the time: progressive, unusual and
  // damaged ones, whether they fail or not. Any thread, at any time.
  std::uint64_t jpegs_by_libjpeg() const noexcept {
    return counts_->jpegs_by_libjpeg.load(std::memory_order_relaxed);
  }

  // Whether the result depends on `draw`.
  bool is_random() const noexcept {
    return options_.crop_field.empty() && options_.fit == image_fit::random_crop;
  }

  // Decodes the sample's data, or its field, into `slot`, a contiguous tensor of that spec. `draw`
  // determines the random crop: equal draws, equal crops. A failure may leave part of an image in
  // the slot. Throws errors that name the sample: invalid_data (with the decoder's reason),
  // unsupported (an unknown format), limit_exceeded (max_pixels), or invalid_argument (a slot of
  // another spec, a sample that has not been read).
  void operator()(const sample& in, const tensor& slot, random draw = {}) const;

  // The same into a new tensor, in memory of the run; outside of a stage, in newly allocated
  // memory.
  tensor operator()(const sample& in, random draw = {}) const;

  // Returns the crop that `fit` chooses for the sample's image by `draw`. Decoding with the crop
  // returns the same pixels as decoding with the draw. Reads only the header of the file; ignores
  // `crop_field`. The second form replaces the width and height of the options by `result`, and
  // uses the default of `shorter_side`: for items of several sizes. Throws as size_of_image does,
  // and error(invalid_argument) for an invalid size.
  chosen_crop crop_of(const sample& in, random draw = {}) const;
  chosen_crop crop_of(const sample& in, random draw, const image_size& result) const;

  // Decode a given part at the size of the crop's result, into a slot of that size or a new tensor.
  // Throw the errors above, error(invalid_argument) for an invalid crop, and error(invalid_data) if
  // the crop is of an image of another size.
  void operator()(const sample& in, const tensor& slot, const chosen_crop& crop) const;
  tensor operator()(const sample& in, const chosen_crop& crop) const;

  // For stages: decodes the waiting images, two JPEGs at a time, which is faster than one after the
  // other. A third may be decoded meanwhile and wait for its resize.
  static constexpr unsigned items_at_a_time = 3;
  void operator()(waiting_samples& waiting) const;
  void operator()(waiting_items<sample, tensor>& waiting) const;

  // Reads and decodes the image of a reader: a file, an object in a store, a member of an archive.
  // Reads all bytes into memory of the caller's pool. Decodes on a thread of the CPU pool if there
  // is a runtime. Throws as the reader does, the errors above naming the reader, and error(stopped)
  // between reading and decoding if the caller is cancelled.
  task<tensor> read(std::shared_ptr<const byte_reader> from, random draw = {}) const;

  // For stages, which wait for memory before a call: the most bytes that decoding needs besides the
  // slot, and together with the tensor. They are read from the header. 0 for formats whose headers
  // do not state them, and for an image that will be refused.
  std::size_t memory_to_write(const sample& in) const;
  std::size_t memory_needed(const sample& in) const;

 private:
  std::shared_ptr<const std::string> fields_;  // the strings of options_
  image_options options_;
  tensor_spec spec_;
  std::shared_ptr<image_counts> counts_;
};

}  // namespace lade::media
