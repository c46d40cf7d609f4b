// Reads JPEG with libjpeg-turbo, with one decompressor per image.

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
  coarse_axis x;  // relative to the first plane
  coarse_axis y;
};

// Reads every kind of JPEG that libjpeg-turbo supports. libjpeg keeps tables from one image to the
// next, so each image gets a new decompressor.
class jpeg_reader final : public image_reader {
 public:
  jpeg_reader();
  ~jpeg_reader() override;
  jpeg_reader(const jpeg_reader&) = delete;
  jpeg_reader& operator=(const jpeg_reader&) = delete;

  // Reads the header. Unless `file.strict`, damaged data are decoded as far as libjpeg conceals the
  // damage.
  void open(const image_file& file) override;

  // Whether start_planes can be called: the image has luma and two equally subsampled chroma
  // planes.
  bool has_planes() const noexcept;

  bool warned() const noexcept override { return errors_.warned; }

  // Prepares `row` for `columns` and `rows`, with the pixels of a decode of the whole image: exact
  // DCT, smooth upsampling of chroma. One channel is the luma. The last `kept` rows stay valid.
  void start_rows(int channels, const axis_range& columns, const axis_range& rows,
                  int kept) override;
  const std::uint8_t* row(int y) override;

  // Prepares plane_row for Y, Cb and Cr as stored, at 1 / `reduction` (1, 2, 4 or 8) of the size,
  // rounded up. The planes are decoded together, as far as rows are requested. So decoding and
  // resizing alternate: a long burst of wide vector instructions would slow the next decode by a
  // tenth.
  void start_planes(int reduction);
  const jpeg_plane& plane(std::size_t i) const noexcept { return planes_[i]; }
  const std::uint8_t* plane_row(std::size_t i, int y);

  // Ends the planes after the blocks that contain luma row `bottom` - 1.
  void end_planes(int bottom) noexcept;

  // Drops the image, decoded or not.
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
    bool extraneous = false;  // bytes outside of segments have been skipped
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
  const image_file* file_ = nullptr;  // the open file

  int channels_ = 0;
  std::size_t left_ = 0;  // bytes from the first decoded column to the first requested one
  row_ring ring_;
  std::vector<std::uint8_t> cmyk_;

  std::array<jpeg_plane, 3> planes_;
  std::array<std::uint8_t*, 3> plane_data_{};
  std::array<std::vector<std::uint8_t>, 3> small_planes_;  // reused by the next image
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
