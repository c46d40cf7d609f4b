// Aspect-ratio buckets: each batch has images of one of several sizes, so wide and tall images lose
// less by cropping.

#pragma once

#include <lade/media/crop.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace lade::media {

// The sizes that images may have in a batch. Each image is assigned to the size with the nearest
// proportions; lade::bucket then makes batches of one size each:
//
//   const size_buckets sizes({{512, 512}, {640, 384}, {384, 640}});
//
//   samples | lade::map(decode)  // by crop_of(in, draw, sizes[sizes.nearest(size)])
//           | lade::bucket(number_of_size, {.boundaries = sizes.boundaries(), .size = 32})
//           | lade::stack({.fields = "image"})
//
// Immutable; any thread may use it.
class size_buckets {
 public:
  // Throws error(invalid_argument) if there is no size, if a width or height is not 1 to 32768
  // pixels, or if two sizes have the same proportions: no image would be assigned to the second.
  explicit size_buckets(std::vector<image_size> sizes);

  // Returns the number of the size with the nearest proportions, the first one of several. The
  // distance is the factor between the ratios of width to height. Throws error(invalid_argument)
  // for an image without pixels.
  std::size_t nearest(const image_size& image) const;

  // Throws std::out_of_range for a number out of range.
  const image_size& operator[](std::size_t number) const { return sizes_.at(number); }
  std::span<const image_size> sizes() const noexcept { return sizes_; }

  // Returns 0, 1, 2, ...: the boundaries for lade::bucket if the length of an item is the number of
  // its size.
  std::vector<std::size_t> boundaries() const;

 private:
  std::vector<image_size> sizes_;
};

}  // namespace lade::media
