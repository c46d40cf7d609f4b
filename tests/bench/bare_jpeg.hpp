// libjpeg-turbo for the bare loops: one decompressor to a thread, reused, with crop and skip.

#pragma once

#include <stdio.h>  // before jpeglib.h, which uses FILE

#include <jpeglib.h>

#include <span>

#include "bench.hpp"

namespace bench {

class jpeg_reader {
 public:
  jpeg_reader() {
    jpeg_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr jpeg) {
      char text[JMSG_LENGTH_MAX];
      jpeg->err->format_message(jpeg, text);
      fail(text);
    };
    errors_.output_message = [](j_common_ptr) {};
    jpeg_create_decompress(&jpeg_);
  }
  ~jpeg_reader() { jpeg_destroy_decompress(&jpeg_); }
  jpeg_reader(const jpeg_reader&) = delete;
  jpeg_reader& operator=(const jpeg_reader&) = delete;

  void open(std::span<const std::uint8_t> bytes) {
    jpeg_mem_src(&jpeg_, bytes.data(), bytes.size());
    jpeg_read_header(&jpeg_, TRUE);
    jpeg_.dct_method = JDCT_ISLOW;
  }
  int width() const { return static_cast<int>(jpeg_.image_width); }
  int height() const { return static_cast<int>(jpeg_.image_height); }
  bool is_420() const {
    const jpeg_component_info* c = jpeg_.comp_info;
    return jpeg_.num_components == 3 && jpeg_.jpeg_color_space == JCS_YCbCr &&
           c[0].h_samp_factor == 2 && c[0].v_samp_factor == 2 && c[1].h_samp_factor == 1 &&
           c[1].v_samp_factor == 1 && c[2].h_samp_factor == 1 && c[2].v_samp_factor == 1;
  }

  // RGB rows that hold the columns [left, right) and begin with row `top`. Returns the column that
  // they begin with: crops start at whole blocks. A block's outermost columns need their
  // neighbour's chroma, so a little more is decoded than is asked for.
  int start_rgb(int left, int right, int top) {
    jpeg_.out_color_space = JCS_RGB;
    jpeg_.raw_data_out = FALSE;
    jpeg_start_decompress(&jpeg_);
    left = std::max(0, left - 1);
    right = std::min(width(), right + 2);
    auto x = static_cast<JDIMENSION>(left);
    auto columns = static_cast<JDIMENSION>(right - left);
    if (left > 0 || right < width()) jpeg_crop_scanline(&jpeg_, &x, &columns);
    if (top > 0) jpeg_skip_scanlines(&jpeg_, static_cast<JDIMENSION>(top));
    return static_cast<int>(x);
  }
  std::size_t row_bytes() const { return std::size_t{jpeg_.output_width} * 3; }
  int read_rows(std::span<std::uint8_t*> rows) {
    return static_cast<int>(
        jpeg_read_scanlines(&jpeg_, rows.data(), static_cast<JDIMENSION>(rows.size())));
  }
  int next_row() const { return static_cast<int>(jpeg_.output_scanline); }

  // Planes as they are coded, 16 rows of luma and 8 of each chroma at a time.
  void start_planes() {
    jpeg_.out_color_space = JCS_YCbCr;
    jpeg_.raw_data_out = TRUE;
    jpeg_start_decompress(&jpeg_);
  }
  void read_planes(std::uint8_t** y, std::uint8_t** u, std::uint8_t** v) {
    std::uint8_t** planes[] = {y, u, v};
    jpeg_read_raw_data(&jpeg_, planes, 16);
  }
  bool at_end() const { return jpeg_.output_scanline >= jpeg_.output_height; }

  // The rest of the image, if any, is never decoded.
  void close() { jpeg_abort_decompress(&jpeg_); }

 private:
  jpeg_decompress_struct jpeg_{};
  jpeg_error_mgr errors_{};
};

}  // namespace bench
