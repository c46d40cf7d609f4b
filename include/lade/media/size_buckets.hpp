// Aspect-ratio buckets: batches of images that share a size, of which there are several, so that
// wide and tall images lose less by cropping.

#pragma once

#include <lade/media/crop.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace lade::media {

// The sizes that images may have in a batch. Each image gets the size whose proportions are nearest
// to its own; lade::bucket then makes batches of one size each:
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
  // Throws error(invalid_argument) if there is no size, if one is not 1 to 32768 pixels wide and
  // high, or if two have the same proportions, since nothing would be assigned to the second.
  explicit size_buckets(std::vector<image_size> sizes);

  // The number of the size with the nearest proportions: the least factor between the two ratios of
  // width to height; the first of several. Throws error(invalid_argument) for an image without
  // pixels.
  std::size_t nearest(const image_size& image) const;

  // Throws std::out_of_range for a number that no size has.
  const image_size& operator[](std::size_t number) const { return sizes_.at(number); }
  std::span<const image_size> sizes() const noexcept { return sizes_; }

  // 0, 1, 2, ...: the boundaries of lade::bucket where the number of its size is an item's length.
  std::vector<std::size_t> boundaries() const;

 private:
  std::vector<image_size> sizes_;
};

}  // namespace lade::media
