// Makes JPEGs of every kind that libjpeg can write.

#pragma once

#include <lade/tensor.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <jpeglib.h>

namespace lade::media {

struct jpeg_kind {
  int quality = 90;
  int sampling_x = 2;  // luma samples for each colour sample
  int sampling_y = 2;
  bool progressive = false;
  bool separate_scans = false;    // one for each component, of an image with three
  unsigned restart_rows = 0;      // rows of blocks between restart markers
  unsigned restart_interval = 0;  // or MCUs
  bool optimised = false;         // Huffman codes made for the image
  bool jfif = true;               // where the colours have that marker
  bool adobe = true;              // likewise
  int passes = 0;                 // of one channel: scans of each AC coefficient alone, bit by bit
  J_COLOR_SPACE from = JCS_RGB;   // of `pixels`, which has as many channels
  J_COLOR_SPACE as = JCS_YCbCr;   // of the file
};

// One scan of the DC coefficients, then `passes` of each of the others.
inline std::vector<jpeg_scan_info> single_scans(int passes) {
  std::vector<jpeg_scan_info> scans{{1, {0}, 0, 0, 0, 0}};
  for (int low = passes - 1; low >= 0; --low)
    for (int k = 1; k < DCTSIZE2; ++k)
      scans.push_back({1, {0}, k, k, low == passes - 1 ? 0 : low + 1, low});
  return scans;
}

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
  constexpr jpeg_scan_info scans[] = {
      {1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
  if (kind.separate_scans) {
    jpeg.scan_info = scans;
    jpeg.num_scans = 3;
  }
  const auto single = single_scans(kind.passes);
  if (kind.passes > 0) {
    jpeg.scan_info = single.data();
    jpeg.num_scans = static_cast<int>(single.size());
  }
  jpeg.restart_in_rows = static_cast<int>(kind.restart_rows);
  jpeg.restart_interval = kind.restart_interval;
  if (kind.optimised) jpeg.optimize_coding = TRUE;
  if (!kind.jfif) jpeg.write_JFIF_header = FALSE;
  if (!kind.adobe) jpeg.write_Adobe_marker = FALSE;
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
