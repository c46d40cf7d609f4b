// JPEG files that libjpeg-turbo encodes, for programs that decode them on a GPU.

#pragma once

#include <lade/buffer.hpp>
#include <lade/cuda/device.hpp>
#include <lade/error.hpp>

#include <cstddef>
#include <cstdio>  // before jpeglib.h, which uses FILE
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include <jpeglib.h>

#include "../../cuda/nvjpeg_api.hpp"

namespace lade::cuda {

// Why nothing can be decoded on a GPU here; empty if it can.
inline std::string why_no_jpegs() {
  if (device::count() == 0) return device::why_none();
  try {
    (void)nvjpeg();
    return {};
  } catch (const error& missing) {
    return missing.what();
  }
}

// How an image is encoded.
struct jpeg_encoding {
  int width;
  int height;
  int columns_per_chroma = 2;  // 0: grey
  int rows_per_chroma = 2;
  bool progressive = false;

  int channels() const noexcept { return columns_per_chroma == 0 ? 1 : 3; }
};

// `pixels`: [height, width, channels()].
inline buffer encode_jpeg(const jpeg_encoding& how, std::span<const unsigned char> pixels) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &bytes, &size);
  jpeg.image_width = static_cast<JDIMENSION>(how.width);
  jpeg.image_height = static_cast<JDIMENSION>(how.height);
  jpeg.input_components = how.channels();
  jpeg.in_color_space = how.channels() == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 90, TRUE);
  if (how.channels() == 3) {
    jpeg.comp_info[0].h_samp_factor = how.columns_per_chroma;
    jpeg.comp_info[0].v_samp_factor = how.rows_per_chroma;
  }
  if (how.progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  const auto row_bytes = static_cast<std::size_t>(how.width * how.channels());
  for (std::size_t y = 0; y < static_cast<std::size_t>(how.height); ++y) {
    auto* row = const_cast<unsigned char*>(pixels.data()) + y * row_bytes;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  buffer file(size);
  std::memcpy(file.data(), bytes, size);
  std::free(bytes);
  return file;
}

}  // namespace lade::cuda
