// Decoding images straight into the slots of a batch: decode, crop, resize and convert in one go.

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
  stretch,      // all of it, whatever its proportions
  centre_crop,  // its shorter side resized to `shorter_side`, then the middle: for validation
  random_crop,  // a random part of random proportions, flipped every other time: for training
  cover,        // the largest part of the result's proportions, from the middle
};

// rgba is for pictures, frames and clips of videos: alpha is opaque where they have none.
enum class image_colour : std::uint8_t { rgb, grey, bgr, rgba };

// How many channels pixels of a colour have.
constexpr int channels_of(image_colour colour) noexcept {
  return colour == image_colour::grey ? 1 : colour == image_colour::rgba ? 4 : 3;
}

struct image_options {
  // The field of a sample that is decoded; its data if empty. Gives the tensor of a batch its name.
  std::string_view field = {};

  // The size of the result. Neither given: the image keeps its own.
  int width = 0;
  int height = 0;
  image_fit fit = image_fit::stretch;

  // The field of a sample with the crop of its image, as to_tensor stores it (crop.hpp). The crop
  // takes the place of `fit`, the draw, width and height. Empty: there is none.
  std::string_view crop_field = {};

  // centre_crop, as torchvision's Resize and CenterCrop: 0 stands for 256 / 224 of width or height,
  // whichever is more.
  int shorter_side = 0;

  // random_crop, as torchvision's RandomResizedCrop and RandomHorizontalFlip: the part's share of
  // the area, its width / height, and how often it is flipped left to right.
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

  // Resizes JPEGs before their colours are converted, and decodes large ones at a half, quarter or
  // eighth of their size, where that is faster. Differs from the exact result by noise of about
  // 50 dB.
  bool fast = false;

  // Turns images as their Exif data say, or their XMP data if those say nothing. AVIF images are
  // turned as their own properties say.
  bool orient = true;

  // Of pictures, frames and clips of videos whose pixels are not square: crops have their
  // proportions as they are shown, and so does the size of the result if none is given.
  bool square_pixels = false;

  // Whether a JPEG that is cut off or damaged is an error; otherwise the result is what libjpeg
  // makes of it. A warning that leaves every pixel intact is no error, but is counted: see
  // decode_image::warnings. JPEG has no checksums: some damage changes pixels and nothing else.
  bool strict = true;

  // The most pixels an image may have; checked before memory is allocated. The default is
  // Pillow's limit: 256 MiB of RGB.
  std::int64_t max_pixels = 89'478'485;
};

// What a decode_image counts.
struct image_counts {
  std::atomic<std::uint64_t> warnings = 0;
  std::atomic<std::uint64_t> jpegs_by_libjpeg = 0;
};

// Decodes images into tensors of one kind. Small, copyable, and usable by any number of threads at
// a time: each keeps decoders and scratch memory of its own, made on first use.
//
// The format is detected by the first bytes, never by the name:
// - JPEG by lade itself if it is of the common kind, else by libjpeg-turbo: sequential Huffman
//   codes of 8 bits in one scan, grey or three components. Both only as far as the crop needs it,
//   and exactly (ISLOW, smooth upsampling: the same pixels as Pillow). What is damaged is left to
//   libjpeg-turbo. Damage outside of the crop may go unnoticed.
// - TIFF by libtiff: strips and tiles, planes, 1 to 16 bits, grey, RGB, palettes, CMYK, YCbCr, and
//   every compression except old-style JPEG.
// - WebP by libwebp, PNG by FFmpeg.
// - AVIF by libavif, before 1.4 with libaom as its decoder: dav1d, which is more than twice as
//   fast, would print what is wrong with damaged data. Where libavif has no other it still does.
// - GIF, BMP and binary PNM by lade itself.
//
// Where memory cannot be had, an image fails by std::bad_alloc, or like a damaged one if libtiff,
// libwebp or libavif do not tell the two apart, unless a library ends the process:
// - libavif 0.11 aborts (avifDecoderCreate and others), libaom 3.6 crashes (aom_codec_destroy).
// - libwebp 1.2.4 crashes with lossless images and alpha (WebPDecodeRGBInto).
// - libtiff 4.5.0 crashes with LZW, Deflate, LZMA, Zstandard and CCITT group 3 (TIFFReadDirectory),
//   and with JPEG.
// - glibc 2.36 aborts at the first image of a thread (__cxa_thread_atexit_impl).
//
// Conversion to 8-bit RGB or grey:
// - Alpha and transparency are dropped. Colours that a TIFF has multiplied by alpha are divided
//   by it, at the TIFF's own number of bits.
// - Palettes are looked up.
// - Of channels with more than 8 bits, the upper 8 are kept. AVIF is scaled by libavif.
// - CMYK is converted without a colour profile. CMYK JPEGs are taken for inverted, as Adobe writes
//   them.
// - Of an animation or a file of many pages, the first image is decoded, on its canvas.
// - Colour profiles are ignored.
// - Grey from colour is a JPEG's luma, elsewhere (299 R + 587 G + 114 B) / 1000.
class decode_image final {
 public:
  // Throws error(invalid_argument) naming an option that cannot work.
  explicit decode_image(const image_options& options = {});

  const image_options& options() const noexcept { return options_; }

  // The field that is decoded; empty if it is the sample's data.
  std::string_view field() const noexcept { return options_.field; }

  // What one image becomes: u8 [224, 224, 3], f32 [3, 224, 224]. Where images keep their size, its
  // height and width are 0.
  const tensor_spec& spec() const noexcept { return spec_; }

  // How many images this object and its copies have decoded in spite of a decoder's warning: extra
  // bytes between the segments of a JPEG before its first scan, header fields that have no meaning,
  // and damage if not `strict`. Any thread may ask at any time.
  std::uint64_t warnings() const noexcept {
    return counts_->warnings.load(std::memory_order_relaxed);
  }

  // How many JPEGs they have left to libjpeg-turbo, which takes twice the time: progressive and
  // unusual ones, and those that are damaged, whether these fail or not. Any thread may ask at any
  // time.
  std::uint64_t jpegs_by_libjpeg() const noexcept {
    return counts_->jpegs_by_libjpeg.load(std::memory_order_relaxed);
  }

  // Whether the result depends on `draw`.
  bool is_random() const noexcept {
    return options_.crop_field.empty() && options_.fit == image_fit::random_crop;
  }

  // Decodes the sample's data, or its field, into `slot`, a contiguous tensor of that spec. `draw`
  // decides the random crop: equal draws, equal crops. Throws errors that name the sample:
  // invalid_data (with the decoder's reason), unsupported (an unknown format), limit_exceeded
  // (max_pixels), or invalid_argument (a slot of another spec, a sample that has not been read). A
  // failure may leave part of an image in the slot.
  void operator()(const sample& in, const tensor& slot, random draw = {}) const;

  // The same into a tensor of the run's memory; into fresh memory outside of a stage.
  tensor operator()(const sample& in, random draw = {}) const;

  // The crop that `fit` chooses for the sample's image by `draw`: decoding by it gives the same
  // pixels as decoding with that draw. Reads the header of the file only, and no `crop_field`. The
  // second form replaces the width and height of the options by `result`, and takes the default
  // of `shorter_side`: a size for each item.
  // Throws what size_of_image throws, and error(invalid_argument) for a size that cannot work.
  chosen_crop crop_of(const sample& in, random draw = {}) const;
  chosen_crop crop_of(const sample& in, random draw, const image_size& result) const;

  // Decode a given part at the size that the crop says, into a slot of that size or a new tensor.
  // Throw the errors above, error(invalid_argument) for a crop that cannot be, and
  // error(invalid_data) if the crop is one of an image of another size.
  void operator()(const sample& in, const tensor& slot, const chosen_crop& crop) const;
  tensor operator()(const sample& in, const chosen_crop& crop) const;

  // For stages: decodes the images that wait, two JPEGs at a time, which takes less than one after
  // the other. A third may be complete meanwhile, and wait to be resized.
  static constexpr unsigned items_at_a_time = 3;
  void operator()(waiting_samples& waiting) const;
  void operator()(waiting_items<sample, tensor>& waiting) const;

  // Reads and decodes the image that a reader has: a file, an object in a store, a member of an
  // archive. All of its bytes are read into memory of the caller's pool, and decoded by a thread of
  // the CPU pool if there is a runtime. Throws what the reader throws, the errors above, which
  // name the reader, and error(stopped) between reading and decoding if the caller is cancelled.
  task<tensor> read(std::shared_ptr<const byte_reader> from, random draw = {}) const;

  // For stages, which wait for so much memory before they call: what decoding takes at most besides
  // the slot, and together with the tensor. Told by the header; 0 of a kind that does not tell
  // there, and of an image that will be refused.
  std::size_t memory_to_write(const sample& in) const;
  std::size_t memory_needed(const sample& in) const;

 private:
  std::shared_ptr<const std::string> fields_;  // texts that options_ refers to
  image_options options_;
  tensor_spec spec_;
  std::shared_ptr<image_counts> counts_;
};

}  // namespace lade::media
