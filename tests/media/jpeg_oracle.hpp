// What libjpeg-turbo makes of a JPEG, and lade's own decoder compared with it.

#pragma once

#include "../../media/jpeg_image.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

#include <jpeglib.h>

namespace lade::media {

// Runs libjpeg over a file up to its first error or warning.
class libjpeg_run {
 public:
  libjpeg_run() : jpeg_() {
    jpeg_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr jpeg) { leave(jpeg); };
    errors_.emit_message = [](j_common_ptr jpeg, int level) {
      if (level < 0) leave(jpeg);
    };
    jpeg_create_decompress(&jpeg_);
  }
  ~libjpeg_run() { jpeg_destroy_decompress(&jpeg_); }
  libjpeg_run(const libjpeg_run&) = delete;
  libjpeg_run& operator=(const libjpeg_run&) = delete;

  // f(jpeg) follows the header. It is left by a jump, and so holds nothing that has a destructor.
  // False if there was an error or a warning.
  template <class F>
  bool over(std::span<const std::byte> file, F f) {
    if (setjmp(errors_.jump) != 0) return false;
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(file.data()),
                 static_cast<unsigned long>(file.size()));
    jpeg_read_header(&jpeg_, TRUE);
    f(jpeg_);
    return true;
  }

 private:
  struct error_manager : jpeg_error_mgr {
    std::jmp_buf jump;
  };
  [[noreturn]] static void leave(j_common_ptr jpeg) {
    std::longjmp(static_cast<error_manager&>(*jpeg->err).jump, 1);
  }

  error_manager errors_;
  jpeg_decompress_struct jpeg_;
};

struct libjpeg_plane {
  std::vector<std::uint8_t> samples;
  std::size_t stride = 0;
  const std::uint8_t* row(int y) const { return samples.data() + std::size_t(y) * stride; }
};
using libjpeg_planes = std::array<libjpeg_plane, 3>;

inline void read_raw_rows(jpeg_decompress_struct& jpeg, libjpeg_planes& planes) {
  std::array<std::array<JSAMPROW, 32>, 3> rows;
  JSAMPARRAY arrays[] = {rows[0].data(), rows[1].data(), rows[2].data()};
  const auto lines = static_cast<JDIMENSION>(jpeg.max_v_samp_factor * jpeg.min_DCT_scaled_size);
  const std::size_t above = jpeg.output_scanline / lines;
  for (std::size_t c = 0; c < std::size_t(jpeg.num_components); ++c) {
    const auto& component = jpeg.comp_info[c];
    const auto count = std::size_t(component.v_samp_factor * component.DCT_scaled_size);
    for (std::size_t y = 0; y < count; ++y)
      rows[c][y] = planes[c].samples.data() + (above * count + y) * planes[c].stride;
  }
  jpeg_read_raw_data(&jpeg, arrays, lines);
}

// More than any image has: of memory, for all of its rows.
inline constexpr int all_rows = 1 << 16;

// Stored samples, at 1 / `reduction` of the size, of the MCUs that the rows above `bottom` touch.
// False if libjpeg has warned until then.
inline bool read_libjpeg_planes(std::span<const std::byte> file, libjpeg_planes& planes,
                                int reduction = 1, int bottom = all_rows) {
  libjpeg_run run;
  return run.over(file, [&](jpeg_decompress_struct& jpeg) {
    jpeg.raw_data_out = TRUE;
    jpeg.out_color_space = jpeg.jpeg_color_space;
    jpeg.scale_num = 1;
    jpeg.scale_denom = unsigned(reduction);
    jpeg_start_decompress(&jpeg);
    for (std::size_t c = 0; c < std::size_t(jpeg.num_components); ++c) {
      const auto& component = jpeg.comp_info[c];
      const auto side = std::size_t(component.DCT_scaled_size);
      planes[c].stride = component.width_in_blocks * side;
      const auto blocks = component.height_in_blocks + unsigned(component.v_samp_factor);
      planes[c].samples.assign(planes[c].stride * blocks * side, 0);
    }
    const auto rows = std::min(jpeg.output_height, static_cast<JDIMENSION>(bottom));
    while (jpeg.output_scanline < rows) read_raw_rows(jpeg, planes);
  });
}

// Pixels of the rows above `bottom`. False if libjpeg has warned until it gave the last of them.
inline bool read_libjpeg_rows(std::span<const std::byte> file, int bottom, J_COLOR_SPACE colours,
                              std::vector<std::uint8_t>& pixels) {
  libjpeg_run run;
  return run.over(file, [&](jpeg_decompress_struct& jpeg) {
    jpeg.out_color_space = colours;
    jpeg_start_decompress(&jpeg);
    const auto stride = std::size_t{jpeg.output_width} * std::size_t(jpeg.output_components);
    const auto rows = std::min(jpeg.output_height, static_cast<JDIMENSION>(bottom));
    pixels.assign(stride * rows, 0);
    while (jpeg.output_scanline < rows) {
      JSAMPROW row = pixels.data() + stride * jpeg.output_scanline;
      jpeg_read_scanlines(&jpeg, &row, 1);
    }
  });
}

// Whether the planes of an image that has been decoded as a whole are libjpeg's.
inline bool has_planes_of(jpeg_image& image, const libjpeg_planes& planes) {
  for (std::size_t c = 0; c < std::size_t(image.headers().count); ++c)
    for (int y = 0; y < image.plane_height(c); ++y)
      if (std::memcmp(image.plane_row(c, y), planes[c].row(y), std::size_t(image.plane_width(c))) !=
          0)
        return false;
  return true;
}

inline jpeg_part whole_of(const jpeg_image& image) {
  return {.right = image.headers().width, .bottom = image.headers().height};
}

}  // namespace lade::media
