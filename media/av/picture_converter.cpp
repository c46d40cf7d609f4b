#include "picture_converter.hpp"

#include "av_messages.hpp"

#include <lade/error.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
}

namespace lade::media {

void sws_deleter::operator()(SwsContext* freed) const noexcept { sws_freeContext(freed); }

// The format without the range that it implies.
static AVPixelFormat without_range(AVPixelFormat format) noexcept {
  switch (format) {
    case AV_PIX_FMT_YUVJ420P: return AV_PIX_FMT_YUV420P;
    case AV_PIX_FMT_YUVJ422P: return AV_PIX_FMT_YUV422P;
    case AV_PIX_FMT_YUVJ444P: return AV_PIX_FMT_YUV444P;
    case AV_PIX_FMT_YUVJ440P: return AV_PIX_FMT_YUV440P;
    case AV_PIX_FMT_YUVJ411P: return AV_PIX_FMT_YUV411P;
    default: return format;
  }
}

bool is_full_range(AVPixelFormat format) noexcept { return without_range(format) != format; }

picture_format format_of_picture(const AVFrame& frame) noexcept {
  const auto stated = static_cast<AVPixelFormat>(frame.format);
  const auto format = without_range(stated);
  return {.format = format,
          .matrix = frame.colorspace,
          .range = format == stated ? frame.color_range : AVCOL_RANGE_JPEG,
          .siting = frame.chroma_location};
}

bool is_rgb(AVPixelFormat format) noexcept {
  const auto* descriptor = av_pix_fmt_desc_get(format);
  return descriptor != nullptr && (descriptor->flags & AV_PIX_FMT_FLAG_RGB) != 0;
}

AVColorSpace usual_matrix(int width, int height) noexcept {
  const bool high_definition = width >= 1280 || height > 576;
  return high_definition ? AVCOL_SPC_BT709 : AVCOL_SPC_SMPTE170M;
}

bool is_grey(AVPixelFormat format) noexcept {
  const auto* descriptor = av_pix_fmt_desc_get(format);
  return descriptor != nullptr && descriptor->nb_components < 3;
}

picture_format picture_converter::completed(picture_format from) const noexcept {
  if (is_rgb(from.format)) {
    from.matrix = AVCOL_SPC_RGB;
    from.range = AVCOL_RANGE_JPEG;
  }
  const bool to_rgb = is_rgb(to_.format);
  const auto range = is_grey(from.format) ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
  if (from.matrix == AVCOL_SPC_UNSPECIFIED)
    from.matrix = to_rgb ? usual_matrix(width_, height_) : to_.matrix;
  if (from.range == AVCOL_RANGE_UNSPECIFIED) from.range = to_rgb ? range : to_.range;
  if (from.siting == AVCHROMA_LOC_UNSPECIFIED) from.siting = to_.siting;
  return from;
}

static std::string format_text(const picture_format& format) {
  const auto known = [](const char* name) { return std::string(name ? name : "unknown"); };
  return known(av_get_pix_fmt_name(format.format)) + " of matrix " +
         known(av_color_space_name(format.matrix));
}

static const int* coefficients_of(const picture_format& format, const std::string& doing) {
  switch (format.matrix) {
    case AVCOL_SPC_BT709: return sws_getCoefficients(SWS_CS_ITU709);
    case AVCOL_SPC_BT470BG:
    case AVCOL_SPC_SMPTE170M:
    case AVCOL_SPC_RGB: return sws_getCoefficients(SWS_CS_ITU601);  // not used for RGB
    case AVCOL_SPC_SMPTE240M: return sws_getCoefficients(SWS_CS_SMPTE240M);
    case AVCOL_SPC_FCC: return sws_getCoefficients(SWS_CS_FCC);
    case AVCOL_SPC_BT2020_NCL: return sws_getCoefficients(SWS_CS_BT2020);
    default: throw error(errc::unsupported, doing, "libswscale has no such matrix");
  }
}

// Sets the chroma position, in 1/256 of a luma sample. swscale's default differs from all
// standards.
static void set_siting(SwsContext& context, const picture_format& format, const char* x_key,
                       const char* y_key) {
  const auto* descriptor = av_pix_fmt_desc_get(format.format);
  if (descriptor->log2_chroma_w == 0 && descriptor->log2_chroma_h == 0) return;
  const auto siting = format.siting == AVCHROMA_LOC_UNSPECIFIED ? AVCHROMA_LOC_LEFT : format.siting;
  constexpr int half = 128;
  const bool centred = siting == AVCHROMA_LOC_CENTER || siting == AVCHROMA_LOC_TOP;
  const bool top = siting == AVCHROMA_LOC_TOPLEFT || siting == AVCHROMA_LOC_TOP;
  const int x = centred ? ((1 << descriptor->log2_chroma_w) - 1) * half : 0;
  const int y = top ? 0 : ((1 << descriptor->log2_chroma_h) - 1) * half;
  av_opt_set_int(&context, x_key, x, 0);
  av_opt_set_int(&context, y_key, y, 0);
}

void picture_converter::make_context(const picture_format& from) {
  const auto doing = "convert " + format_text(from) + " to " + format_text(to_);
  const int* source = coefficients_of(from, doing);
  const int* target = coefficients_of(to_, doing);
  const av_messages messages;
  context_.reset(check_av(sws_alloc_context()));
  auto* context = context_.get();
  const auto set = [&](const char* key, std::int64_t value) {
    check_av(av_opt_set_int(context, key, value, 0), doing);
  };
  set("srcw", width_);
  set("srch", height_);
  set("src_format", from.format);
  set("dstw", width_);
  set("dsth", height_);
  set("dst_format", to_.format);
  set("sws_flags",
      SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP | SWS_BITEXACT);
  set_siting(*context, from, "src_h_chr_pos", "src_v_chr_pos");
  set_siting(*context, to_, "dst_h_chr_pos", "dst_v_chr_pos");
  const auto full = [](const picture_format& format) {
    return format.range == AVCOL_RANGE_JPEG ? 1 : 0;
  };
  if (sws_init_context(context, nullptr, nullptr) < 0)
    throw error(errc::unsupported, doing, "libswscale does not convert them" + messages.addition());
  constexpr int one = 1 << 16;  // brightness 0, contrast and saturation 1
  sws_setColorspaceDetails(context, source, full(from), target, full(to_), 0, one, one);
  from_ = from;
}

// Converts rows [first, first + count), to which `rows` points.
void picture_converter::convert_band(const picture_rows& rows, int first, int count,
                                     AVFrame& into) {
  const av_messages messages;
  const int result = sws_scale(context_.get(), rows.planes.data(), rows.strides.data(), first,
                               count, into.data, into.linesize);
  check_av(result, "convert a picture", messages);
}

// Converts padded copies of the rows. For formats whose planes all have as many rows as the
// picture.
void picture_converter::convert_copies(const picture_rows& rows, AVFrame& into) {
  constexpr int most = 16;  // rows, so that the copies stay in the cache
  constexpr int padding = 64;
  picture_rows copies;
  std::array<int, 4> used{};
  check_av(av_image_fill_linesizes(used.data(), from_.format, width_), "size a picture");
  const int stride = (*std::ranges::max_element(used) + padding + 63) / 64 * 64;
  band_.resize(std::size_t{most} * used.size() * static_cast<std::size_t>(stride));
  for (int first = 0; first < height_; first += most) {
    const int count = std::min(most, height_ - first);
    auto* copy = band_.data();
    for (std::size_t plane = 0; plane < used.size() && used[plane] > 0; ++plane) {
      copies.planes[plane] = copy;
      copies.strides[plane] = stride;
      for (int row = first; row < first + count; ++row, copy += stride)
        std::copy_n(rows.planes[plane] + std::ptrdiff_t{row} * rows.strides[plane], used[plane],
                    copy);
    }
    convert_band(copies, first, count, into);
  }
}

void picture_converter::convert(const picture_rows& rows, const picture_format& from,
                                AVFrame& into) {
  const auto stated = completed(from);
  if (!context_ || stated != from_) make_context(stated);
  if (rows.padded)
    convert_band(rows, 0, height_, into);
  else
    convert_copies(rows, into);
}

}  // namespace lade::media
