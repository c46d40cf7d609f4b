// JPEGs of the shipped photographs, for benchmarks that measure one thread's decoding.

#pragma once

#include "../media/images.hpp"
#include "../media/jpeg_writer.hpp"

#include <lade/media/image.hpp>
#include <lade/media/resize.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace lade::media {

// Sixty parts of photographs, each of another size, resized to one.
inline std::vector<tensor> photos_of(std::int64_t height, std::int64_t width) {
  constexpr std::size_t count = 60;
  const auto files = photos();
  const auto across = static_cast<double>(width), down = static_cast<double>(height);
  std::vector<tensor> all;
  for (std::size_t i = 0; i < count; ++i) {
    const tensor photo = decode_image()(load(files[i % files.size()]));
    const double scale = std::min(static_cast<double>(photo.shape()[1]) / across,
                                  static_cast<double>(photo.shape()[0]) / down) *
                         (0.99 - 0.2 * double(i / files.size()));
    tensor pixels(element_type::u8, {height, width, 3});
    resize(photo, pixels, {.from = {0, 0, across * scale, down * scale}});
    all.push_back(pixels);
  }
  return all;
}

// The photo at the quality at which it has about 110 KB.
inline buffer write_of_size(const tensor& pixels) {
  int low = 50;
  int high = 100;
  while (high - low > 1) {
    const int quality = (low + high) / 2;
    const auto size = write_jpeg(pixels, {.quality = quality}).size();
    (size > 110'000 ? high : low) = quality;
  }
  return write_jpeg(pixels, {.quality = low});
}

template <class Write>
std::vector<sample> jpegs_of(const std::vector<tensor>& photos, Write write) {
  std::vector<sample> all;
  for (std::size_t i = 0; i < photos.size(); ++i)
    all.push_back(sample(std::to_string(i)).with_data(write(photos[i])));
  return all;
}

}  // namespace lade::media
