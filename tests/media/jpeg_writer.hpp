// Makes JPEGs of every kind that libjpeg can write.

#pragma once

#include <lade/tensor.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <jpeglib.h>

namespace lade::media {

struct jpeg_kind {
  int quality = 90;
  int sampling_x = 2;  // luma samples for each colour sample
  int sampling_y = 2;
  bool progressive = false;
  unsigned restart_rows = 0;     // rows of blocks between restart markers
  J_COLOR_SPACE from = JCS_RGB;  // of `pixels`, which has as many channels
  J_COLOR_SPACE as = JCS_YCbCr;  // of the file
};

inline buffer write_jpeg(const tensor& pixels, const jpeg_kind& kind = {}) {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* data = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &data, &size);
  jpeg.image_height = static_cast<JDIMENSION>(pixels.shape()[0]);
  jpeg.image_width = static_cast<JDIMENSION>(pixels.shape()[1]);
  jpeg.input_components = static_cast<int>(pixels.shape()[2]);
  jpeg.in_color_space = kind.from;
  jpeg_set_defaults(&jpeg);
  jpeg_set_colorspace(&jpeg, kind.as);
  jpeg_set_quality(&jpeg, kind.quality, TRUE);
  jpeg.comp_info[0].h_samp_factor = jpeg.num_components == 3 ? kind.sampling_x : 1;
  jpeg.comp_info[0].v_samp_factor = jpeg.num_components == 3 ? kind.sampling_y : 1;
  if (kind.progressive) jpeg_simple_progression(&jpeg);
  jpeg.restart_in_rows = static_cast<int>(kind.restart_rows);
  jpeg_start_compress(&jpeg, TRUE);
  for (std::int64_t y = 0; y < pixels.shape()[0]; ++y) {
    JSAMPROW row = pixels[y].data<std::uint8_t>();
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  buffer file(size);
  std::memcpy(file.data(), data, size);
  std::free(data);
  return file;
}

}  // namespace lade::media
