#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>

#include "colours.hpp"
#include "jpeg_reader.hpp"

#include "jpeg_axis.hpp"

#include <algorithm>
#include <cmath>
#include <new>

#include <jerror.h>

namespace lade::media {

// Calls libjpeg. Its errors jump back here, past C frames and `call`. So `call` must have no
// objects with destructors.
template <class F>
void jpeg_reader::guarded(F call) {
  if (setjmp(errors_.jump) != 0) fail();
  call();
}

void jpeg_reader::fail() const {
  switch (errors_.msg_code) {
    case JERR_OUT_OF_MEMORY: throw std::bad_alloc();
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_SOF_UNSUPPORTED: throw error(errc::unsupported, file_->doing, errors_.text);
    default: throw_damaged(*file_, "JPEG", errors_.text);
  }
}

void jpeg_reader::on_error(j_common_ptr jpeg) {
  auto& errors = static_cast<error_manager&>(*jpeg->err);
  errors.format_message(jpeg, errors.text);
  std::longjmp(errors.jump, 1);
}

// Warnings that leave the pixels intact: fields that sequential JPEGs do not use, the version of a
// header and, before the first scan, bytes outside of segments. In later scans, such bytes may be
// the rest of damaged data.
static bool leaves_pixels_intact(int warning, bool in_header) {
  return warning == JWRN_NOT_SEQUENTIAL || warning == JWRN_JFIF_MAJOR ||
         (warning == JWRN_EXTRANEOUS_DATA && in_header);
}

void jpeg_reader::on_message(j_common_ptr jpeg, int level) {
  auto& errors = static_cast<error_manager&>(*jpeg->err);
  if (level >= 0) return;
  if (errors.strict && !leaves_pixels_intact(errors.msg_code, errors.in_header)) on_error(jpeg);
  errors.warned = true;
  errors.extraneous |= errors.msg_code == JWRN_EXTRANEOUS_DATA;
}

// Limits the number of scans: a scan of a few bytes costs time for every pixel. Encoders write
// about ten.
void jpeg_reader::on_progress(j_common_ptr jpeg) {
  constexpr int most_scans = 100;
  if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number <= most_scans) return;
  auto& errors = static_cast<error_manager&>(*jpeg->err);
  errors.msg_code = JMSG_NOMESSAGE;
  std::snprintf(errors.text, sizeof errors.text, "it has more than %d scans", most_scans);
  std::longjmp(errors.jump, 1);
}

jpeg_reader::jpeg_reader() : jpeg_() {
  jpeg_.err = jpeg_std_error(&errors_);
  errors_.error_exit = on_error;
  errors_.emit_message = on_message;
  progress_.progress_monitor = on_progress;
}

jpeg_reader::~jpeg_reader() { jpeg_destroy_decompress(&jpeg_); }

void jpeg_reader::open(const image_file& file) {
  file_ = &file;
  errors_.strict = file.strict;
  errors_.warned = false;
  errors_.in_header = true;
  errors_.extraneous = false;
  jpeg_destroy_decompress(&jpeg_);
  guarded([&] {
    jpeg_create_decompress(&jpeg_);
    jpeg_.progress = &progress_;
    coefficients_.serve(jpeg_);
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(file.bytes.data()),
                 static_cast<unsigned long>(file.bytes.size()));
    jpeg_read_header(&jpeg_, TRUE);
  });
  errors_.in_header = false;
  if (file.strict && errors_.extraneous && may_lack_scan())
    throw_damaged(file, "JPEG", "extraneous bytes may be a scan");
  set_shape(file, jpeg_.image_width, jpeg_.image_height, jpeg_.num_components == 1);
}

// Whether a missing first scan would go unnoticed. In a progressive JPEG, libjpeg detects it.
bool jpeg_reader::may_lack_scan() const noexcept {
  return jpeg_.progressive_mode == FALSE && jpeg_.comps_in_scan < jpeg_.num_components;
}

bool jpeg_reader::has_planes() const noexcept {
  if (jpeg_.num_components != 3 || jpeg_.jpeg_color_space != JCS_YCbCr) return false;
  const auto& y = jpeg_.comp_info[0];
  const auto& cb = jpeg_.comp_info[1];
  const auto& cr = jpeg_.comp_info[2];
  return y.h_samp_factor == jpeg_.max_h_samp_factor && y.v_samp_factor == jpeg_.max_v_samp_factor &&
         cb.h_samp_factor == cr.h_samp_factor && cb.v_samp_factor == cr.v_samp_factor;
}

void jpeg_reader::start_rows(int channels, const axis_range& columns, const axis_range& rows,
                             int kept) {
  channels_ = channels;
  const bool inks = jpeg_.num_components == 4;
  jpeg_.out_color_space = inks ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  guarded([&] {
    jpeg_start_decompress(&jpeg_);
    crop(columns);
    if (rows.low > 0) jpeg_skip_scanlines(&jpeg_, static_cast<JDIMENSION>(rows.low));
  });
  ring_.reset(rows.low, kept, std::size_t(jpeg_.output_width) * std::size_t(channels));
  if (inks) cmyk_.resize(std::size_t(jpeg_.output_width) * 4);
}

// Decodes two more columns on either side. Smooth upsampling treats the first and last decoded
// column as the edge of the image, which must stay outside of the requested part.
void jpeg_reader::crop(const axis_range& columns) {
  const int left = std::max(columns.low - 2, 0);
  const int right = std::min(columns.high + 2, width());
  auto begin = static_cast<JDIMENSION>(left);
  auto count = static_cast<JDIMENSION>(right - left);
  if (right - left < width())
    jpeg_crop_scanline(&jpeg_, &begin, &count);
  else
    begin = 0;
  left_ = static_cast<std::size_t>(columns.low - static_cast<int>(begin)) *
          static_cast<std::size_t>(channels_);
}

const std::uint8_t* jpeg_reader::row(int y) {
  return ring_.row(y, [this](int, std::uint8_t* out) { read_row(out); }) + left_;
}

// Converts Adobe's inverted inks to RGB or grey.
static void convert_inks(const std::uint8_t* cmyk, int count, int channels, std::uint8_t* out) {
  for (int x = 0; x < count; ++x, cmyk += 4, out += channels) {
    const auto rgb = rgb_of_inverted_inks(cmyk);
    if (channels == 1)
      *out = luma_of(rgb[0], rgb[1], rgb[2]);
    else
      std::ranges::copy(rgb, out);
  }
}

void jpeg_reader::read_row(std::uint8_t* out) {
  const bool inks = jpeg_.out_color_space == JCS_CMYK;
  JSAMPROW rows[] = {inks ? cmyk_.data() : out};
  guarded([&] { jpeg_read_scanlines(&jpeg_, rows, 1); });
  if (inks) convert_inks(cmyk_.data(), static_cast<int>(jpeg_.output_width), channels_, out);
}

// The grid of a plane whose blocks are decoded to `block` samples.
static coarse_axis axis_of_blocks(JDIMENSION size, int luma_factor, int factor, int luma_block,
                                  int block) {
  const double pixels = static_cast<double>(luma_factor) / factor * DCTSIZE / block;
  return jpeg_axis(static_cast<int>(size), pixels * luma_block / DCTSIZE, pixels,
                   luma_factor == 2 * factor);
}

void jpeg_reader::start_planes(int reduction) {
  jpeg_.raw_data_out = TRUE;
  jpeg_.out_color_space = JCS_YCbCr;
  jpeg_.scale_num = 1;
  jpeg_.scale_denom = static_cast<unsigned>(reduction);
  jpeg_.do_fancy_upsampling = FALSE;
  guarded([&] { jpeg_start_decompress(&jpeg_); });
  const auto& luma = jpeg_.comp_info[0];
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& component = jpeg_.comp_info[i];
    const auto block = static_cast<std::size_t>(component.DCT_scaled_size);
    const auto stride = component.width_in_blocks * block;
    // libjpeg writes whole rows of MCUs, also below the image's last row.
    const auto rows = (component.height_in_blocks + unsigned(component.v_samp_factor)) * block;
    plane_data_[i] = plane_memory(i, stride * rows);
    planes_[i] = {.data = plane_data_[i],
                  .stride = static_cast<std::ptrdiff_t>(stride),
                  .x = axis_of_blocks(component.downsampled_width, luma.h_samp_factor,
                                      component.h_samp_factor, luma.DCT_scaled_size,
                                      component.DCT_scaled_size),
                  .y = axis_of_blocks(component.downsampled_height, luma.v_samp_factor,
                                      component.v_samp_factor, luma.DCT_scaled_size,
                                      component.DCT_scaled_size)};
  }
}

// Threads keep the planes of common images. Planes of large images are allocated from the memory of
// the run.
std::uint8_t* jpeg_reader::plane_memory(std::size_t plane, std::size_t bytes) {
  constexpr auto most_kept = std::size_t{1} << 19;
  if (bytes <= most_kept) {
    small_planes_[plane].resize(bytes);
    return small_planes_[plane].data();
  }
  large_planes_[plane] = allocate_now(bytes);
  return reinterpret_cast<std::uint8_t*>(large_planes_[plane].data());
}

// The rows of luma that libjpeg decodes at a time.
int jpeg_reader::rows_of_blocks() const noexcept {
  return jpeg_.max_v_samp_factor * jpeg_.min_DCT_scaled_size;
}

void jpeg_reader::end_planes(int bottom) noexcept {
  const int blocks = (bottom + rows_of_blocks() - 1) / rows_of_blocks();
  for (auto& plane : planes_)
    plane.y.size =
        std::min(plane.y.size, static_cast<int>(blocks * rows_of_blocks() / plane.y.step));
}

const std::uint8_t* jpeg_reader::plane_row(std::size_t i, int y) {
  while (y * planes_[i].y.step >= jpeg_.output_scanline) read_blocks();
  return planes_[i].data + y * planes_[i].stride;
}

void jpeg_reader::read_blocks() {
  constexpr std::size_t most_rows = 4 * DCTSIZE;
  std::array<std::array<JSAMPROW, most_rows>, 3> rows;
  JSAMPARRAY planes[] = {rows[0].data(), rows[1].data(), rows[2].data()};
  const auto lines = static_cast<JDIMENSION>(rows_of_blocks());
  const std::size_t above = jpeg_.output_scanline / lines;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& component = jpeg_.comp_info[i];
    const auto count =
        static_cast<std::size_t>(component.v_samp_factor * component.DCT_scaled_size);
    for (std::size_t y = 0; y < count; ++y)
      rows[i][y] = plane_data_[i] + (above * count + y) * std::size_t(planes_[i].stride);
  }
  guarded([&] { jpeg_read_raw_data(&jpeg_, planes, lines); });
}

}  // namespace lade::media
