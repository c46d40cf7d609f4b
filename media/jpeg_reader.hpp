// JPEG by libjpeg-turbo: one decompressor, used for one image after another.

#pragma once

#include <lade/buffer.hpp>

#include "image_reader.hpp"
#include "jpeg_arrays.hpp"
#include "row_ring.hpp"

#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <jpeglib.h>

namespace lade::media {

struct jpeg_plane {
  const std::uint8_t* data = nullptr;
  std::ptrdiff_t stride = 0;
  coarse_axis x;  // against the first plane
  coarse_axis y;
};

// Reads every kind of JPEG that libjpeg-turbo does. libjpeg keeps tables from one image to the
// next, so every image gets a decompressor of its own.
class jpeg_reader final : public image_reader {
 public:
  jpeg_reader();
  ~jpeg_reader() override;
  jpeg_reader(const jpeg_reader&) = delete;
  jpeg_reader& operator=(const jpeg_reader&) = delete;

  // Reads the header. Unless `file.strict`, decodes what libjpeg makes of damaged data.
  void open(const image_file& file) override;

  // Whether the image has luma and two equally coarse colour planes, so that start_planes works.
  bool has_planes() const noexcept;

  bool warned() const noexcept override { return errors_.warned; }

  // Decodes the columns [left, right) of the rows [top, bottom), as the whole image has them:
  // exact DCT, smooth upsampling of colour. One channel is the luma. From then on `row` gives the
  // rows; the last `kept` stay in place.
  void start_rows(int channels, const axis_range& columns, const axis_range& rows,
                  int kept) override;
  const std::uint8_t* row(int y) override;

  // Decodes Y, Cb and Cr as they are stored, at 1 / `reduction` (1, 2, 4 or 8) of the size rounded
  // up, as far as rows are asked for: all three together, so that decoding and what is done with
  // the rows take turns. A burst of wide vectors after each whole image would slow the decoding of
  // the next by a tenth.
  void start_planes(int reduction);
  const jpeg_plane& plane(std::size_t i) const noexcept { return planes_[i]; }
  const std::uint8_t* plane_row(std::size_t i, int y);

  // Has the planes end with the blocks that hold the luma down to row `bottom`.
  void end_planes(int bottom) noexcept;

  // Gives up the rest of the image.
  void close() noexcept override {
    jpeg_abort_decompress(&jpeg_);
    coefficients_.clear();
    large_planes_ = {};
  }

 private:
  struct error_manager : jpeg_error_mgr {
    std::jmp_buf jump;
    bool strict = true;
    bool warned = false;
    bool in_header = true;    // before the first scan
    bool extraneous = false;  // whether bytes that belong to no segment have been skipped
    char text[JMSG_LENGTH_MAX] = "";
  };

  [[noreturn]] static void on_error(j_common_ptr jpeg);
  static void on_message(j_common_ptr jpeg, int level);
  static void on_progress(j_common_ptr jpeg);
  [[noreturn]] void fail() const;
  bool may_lack_scan() const noexcept;

  template <class F>
  void guarded(F call);
  void crop(const axis_range& columns);
  void read_row(std::uint8_t* out);
  std::uint8_t* plane_memory(std::size_t plane, std::size_t bytes);
  int rows_of_blocks() const noexcept;
  void read_blocks();

  error_manager errors_;
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct jpeg_;
  jpeg_arrays coefficients_;
  const image_file* file_ = nullptr;  // whose image is read

  int channels_ = 0;
  std::size_t left_ = 0;  // from the first decoded byte of a row to the first wanted
  row_ring ring_;
  std::vector<std::uint8_t> cmyk_;

  std::array<jpeg_plane, 3> planes_;
  std::array<std::uint8_t*, 3> plane_data_{};
  std::array<std::vector<std::uint8_t>, 3> small_planes_;  // kept for the next image
  std::array<buffer, 3> large_planes_;
};

// The rows of a plane, from column `left` on.
class plane_rows final : public row_source {
 public:
  plane_rows(jpeg_reader& from, std::size_t plane, int left)
      : from_(from), plane_(plane), left_(left) {}
  const std::uint8_t* row(int y) override { return from_.plane_row(plane_, y) + left_; }

 private:
  jpeg_reader& from_;
  std::size_t plane_;
  int left_;
};

}  // namespace lade::media
