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

// Crops a mask. `mask` is [height, width] of any type and strides. `out` is contiguous, of the same
// type, and [crop.result.height, crop.result.width]. Every element of `out` is the nearest element
// of `mask`; values are never mixed:
//
//   out[i][j] = mask[floor(top + (i + 0.5) * box.height / result.height)]
//                   [floor(left + (j + 0.5) * box.width / result.width)]
//
// The result is flipped left to right if the crop is. Pixels are squares, and the centre of each
// pixel of the result decides, as in Pillow's NEAREST and PyTorch's nearest-exact. So masks are
// aligned with images. PyTorch's `nearest` uses the corner instead, which is half a pixel further
// left and up.
//
// Any thread. Throws error(invalid_data) if the size of the mask differs from that of the crop's
// image, and error(invalid_argument) for an invalid crop or tensor.
void crop_mask(const tensor& mask, const tensor& out, const chosen_crop& crop);

// The same into a new tensor.
tensor crop_mask(const tensor& mask, const chosen_crop& crop);

struct mask_options {
  // The field of a sample that is decoded; its data if empty. Also the name of the tensor in a
  // batch.
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
// A mask is a PNG file of grey values or palette indices of 1 to 16 bits, with the size of its
// image. The values are those of the file. Indices are not looked up, also if the palette lacks
// them. Small values are not scaled, so a mask of 1 bit has the values 0 and 1. Other files are
// refused: colours and alpha are not classes, and JPEG does not preserve values.
//
// A mask covers its image as displayed: upright, unless the image options have `orient = false`.
// With `orient`, a mask with an orientation in its file is also turned upright.
//
// Small, copyable, and usable by any number of threads at a time.
class decode_mask final {
 public:
  // `image`: the options that decode the image of the mask. The size of the result, `fit` with its
  // parameters, `crop_field`, `orient` and `max_pixels` also apply to the mask. Throws
  // error(invalid_argument) naming an invalid option.
  explicit decode_mask(const image_options& image, const mask_options& mask = {});

  std::string_view field() const noexcept { return *field_; }

  // The spec of the tensor of a mask: u8 [512, 512]. Height and width are 0 if images keep their
  // size.
  const tensor_spec& spec() const noexcept { return spec_; }

  // Whether the result depends on `draw`.
  bool is_random() const noexcept { return image_.is_random(); }

  // Decode the mask of a sample by a crop. `slot`: a contiguous tensor of the type of `spec` and
  // the size of the crop's result. Without a slot, the tensor is in memory of the run.
  //
  // Throw errors that name the sample:
  // - invalid_data: damage, or a size that differs from the image's
  // - unsupported: another kind of file, or more bits than the type holds
  // - limit_exceeded: max_pixels
  // - invalid_argument: another slot, a sample that has not been read, an invalid crop
  void operator()(const sample& in, const tensor& slot, const chosen_crop& crop) const;
  tensor operator()(const sample& in, const chosen_crop& crop) const;

  // Decode by the crop that decode_image makes of the sample's image with the same draw. The sample
  // must contain the image, from whose header the size is read. Throw the errors above and those of
  // decode_image::crop_of.
  //
  // Random numbers differ between stages. So decode an image and its mask in one stage: by writers,
  // or in one function with one draw. Two maps or two paths of a tee choose different crops; they
  // need the crop in a field (`crop_field`).
  void operator()(const sample& in, const tensor& slot, random draw = {}) const;
  tensor operator()(const sample& in, random draw = {}) const;

  // For stages, which wait for memory before a call: the bytes that decoding needs besides the
  // slot, and together with the tensor. 0 for a file that will be refused.
  std::size_t memory_to_write(const sample& in) const;
  std::size_t memory_needed(const sample& in) const;

 private:
  chosen_crop crop_for(const sample& in, random draw, std::string_view doing) const;

  std::shared_ptr<const std::string> field_;
  decode_image image_;
  tensor_spec spec_;
};

}  // namespace lade::media
