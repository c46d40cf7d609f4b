// Conversion of pictures between pixel formats and colours, at equal size.

#pragma once

#include <lade/media/av.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

extern "C" {
#include <libavutil/frame.h>
#include <libavutil/pixfmt.h>
}

struct SwsContext;

namespace lade::media {

struct sws_deleter {
  void operator()(SwsContext* freed) const noexcept;
};

// The pixel format and colours of a picture.
struct picture_format {
  AVPixelFormat format = AV_PIX_FMT_NONE;
  AVColorSpace matrix = AVCOL_SPC_UNSPECIFIED;
  AVColorRange range = AVCOL_RANGE_UNSPECIFIED;
  AVChromaLocation siting = AVCHROMA_LOC_UNSPECIFIED;  // FFmpeg's default: left

  friend bool operator==(const picture_format&, const picture_format&) = default;
};

// The format of a frame. A format that implies the full range ("yuvj420p") is replaced by its
// equivalent.
picture_format format_of_picture(const AVFrame& frame) noexcept;

bool is_rgb(AVPixelFormat format) noexcept;
bool is_grey(AVPixelFormat format) noexcept;

// Whether a format implies the full range ("yuvj420p").
bool is_full_range(AVPixelFormat format) noexcept;

// The matrix of a picture that does not state one.
AVColorSpace usual_matrix(int width, int height) noexcept;

// Rows of pixels, as FFmpeg's planes and strides.
struct picture_rows {
  std::array<const std::uint8_t*, 4> planes{};
  std::array<int, 4> strides{};  // in bytes
  bool padded = true;            // bytes after each row may be read
};

// Converts pictures of one size to one format. Keeps swscale's context while the source format does
// not change. swscale reads whole vectors, so rows without padding are copied first, some rows at a
// time. One thread at a time.
class picture_converter {
 public:
  picture_converter(int width, int height, const picture_format& to) noexcept
      : width_(width), height_(height), to_(to) {}

  // Fills the planes of `into`, which has the target size and format. Colours that `from` does not
  // state are assumed to be those of the result. If the result is RGB, they are the usual matrix
  // and the limited range, or the full range for grey. Throws error(unsupported) for formats and
  // matrices that swscale lacks.
  void convert(const picture_rows& rows, const picture_format& from, AVFrame& into);

  // Whether a picture already has the target format.
  bool is_equal(const picture_format& from) const noexcept { return completed(from) == to_; }

 private:
  picture_format completed(picture_format from) const noexcept;
  void make_context(const picture_format& from);
  void convert_band(const picture_rows& rows, int first, int count, AVFrame& into);
  void convert_copies(const picture_rows& rows, AVFrame& into);

  int width_;
  int height_;
  picture_format to_;
  picture_format from_;  // the context's source
  std::unique_ptr<SwsContext, sws_deleter> context_;
  std::vector<std::uint8_t> band_;  // rows with padding
};

}  // namespace lade::media
