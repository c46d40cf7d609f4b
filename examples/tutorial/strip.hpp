// Writes images one below the other, to check the input of a model.

#pragma once

#include <lade/media/png.hpp>
#include <lade/tensor.hpp>

#include <fstream>
#include <string>

// `images`: u8 [images, height, width, channels], contiguous, as a batch of images is.
inline void save_strip(const lade::tensor& images, const std::string& path) {
  auto& shape = images.shape();
  lade::tensor_spec strip{images.type(), {shape[0] * shape[1], shape[2], shape[3]}};
  auto strides = lade::contiguous_strides(strip.shape);
  lade::tensor image(strip, strides, images.memory(), images.bytes());
  std::ofstream(path, std::ios::binary) << lade::media::encode_png(image).text();
}
