// Masks of images: a class or an object for each pixel, cropped like the image.

#pragma once

#include <lade/media/crop.hpp>
#include <lade/media/image.hpp>
#include <lade/random.hpp>
#include <lade/sample.hpp>
#include <lade/tensor.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace lade::media {

// Crops a mask: `mask` is [height, width] of any type and strides, `out` contiguous, of the same
// type, and [crop.result.height, crop.result.width]. Every element of `out` is an element of
// `mask`, the nearest one; values are never mixed:
//
//   out[i][j] = mask[floor(top + (i + 0.5) * box.height / result.height)]
//                   [floor(left + (j + 0.5) * box.width / result.width)]
//
// then flipped left to right if the crop is. Pixels are squares, and the centre of each pixel of
// the result decides: as Pillow's NEAREST and PyTorch's nearest-exact, and aligned with images.
// PyTorch's `nearest` takes the corner instead, up to half a pixel to the left and above.
//
// Any thread. Throws error(invalid_data) for a mask of another size than the crop's image, and
// error(invalid_argument) for a crop or a tensor that cannot be.
void crop_mask(const tensor& mask, const tensor& out, const chosen_crop& crop);

// The same into a new tensor.
tensor crop_mask(const tensor& mask, const chosen_crop& crop);

struct mask_options {
  // The field of a sample that is decoded; its data if empty. Gives the tensor of a batch its name.
  std::string_view field = {};

  // u8, u16, i32 or i64. A PNG of 16 bits is refused for u8.
  element_type type = element_type::u8;
};

// Decodes masks into tensors [height, width] and crops them like their images. For batches:
//
//   const image_options how{.field = "jpg", .width = 512, .height = 512,
//                           .fit = image_fit::random_crop};
//   lade::batch_into(lade::writers(decode_image(how), decode_mask(how, {.field = "png"})),
//                    {.size = 16})
//
// A mask is a PNG file of grey values or palette indices of 1 to 16 bits, of the size of its image.
// The values are those of the file: indices are not looked up, and small ones are not scaled, so a
// mask of 1 bit has the values 0 and 1. Other files are refused: colours and alpha are no classes,
// and a JPEG does not keep values. Indices that the palette lacks are kept.
//
// A mask covers its image as it is shown: upright, unless the image options say `orient = false`.
// With `orient`, a mask that has an orientation of its own is turned upright, too.
//
// Small, copyable, and usable by any number of threads at a time.
class decode_mask final {
 public:
  // `image`: how the image of the mask is decoded. The size of the result, `fit` with its
  // parameters, `crop_field`, `orient` and `max_pixels` hold for the mask. Throws
  // error(invalid_argument) naming an option that cannot work.
  explicit decode_mask(const image_options& image, const mask_options& mask = {});

  std::string_view field() const noexcept { return *field_; }

  // What one mask becomes: u8 [512, 512]. Where images keep their size, height and width are 0.
  const tensor_spec& spec() const noexcept { return spec_; }

  // Whether the result depends on `draw`.
  bool is_random() const noexcept { return image_.is_random(); }

  // Decode the mask of a sample by a crop, into a contiguous tensor of the type of `spec` and the
  // size of the crop's result, or into a tensor of the run's memory. Throw errors that name the
  // sample: invalid_data (damage, or a mask of another size than its image), unsupported (another
  // kind of file, or more bits than the type holds), limit_exceeded (max_pixels), or
  // invalid_argument (another slot, a sample that has not been read, a crop that cannot be).
  void operator()(const sample& in, const tensor& slot, const chosen_crop& crop) const;
  tensor operator()(const sample& in, const chosen_crop& crop) const;

  // By the crop that decode_image makes of the sample's image with the same draw. The size of the
  // image is read from its header, for which the sample must have it. Throw the errors above and
  // those of decode_image::crop_of.
  void operator()(const sample& in, const tensor& slot, random draw = {}) const;
  tensor operator()(const sample& in, random draw = {}) const;

  // For stages, which wait for so much memory before they call: what decoding takes besides the
  // slot, and together with the tensor. 0 of a file that will be refused.
  std::size_t memory_to_write(const sample& in) const;
  std::size_t memory_needed(const sample& in) const;

 private:
  chosen_crop crop_for(const sample& in, random draw, std::string_view doing) const;

  std::shared_ptr<const std::string> field_;
  decode_image image_;
  tensor_spec spec_;
};

}  // namespace lade::media
