#include "video_format.hpp"

#include "compat.hpp"

#include <lade/error.hpp>

#include <algorithm>
#include <span>
#include <string>

extern "C" {
#include <libavutil/pixdesc.h>
}

namespace lade::media {

static std::span<const AVPixelFormat> formats_of(const AVCodec& encoder) noexcept {
  const auto* list = pixel_formats_of(encoder);
  if (list == nullptr) return {};
  const auto* end = list;
  while (*end != AV_PIX_FMT_NONE) ++end;
  return {list, end};
}

static bool has_format(const AVCodec& encoder, AVPixelFormat format) noexcept {
  const auto all = formats_of(encoder);
  return all.empty() || std::find(all.begin(), all.end(), format) != all.end();
}

AVPixelFormat nearest_pixel_format(const AVCodec& encoder, AVPixelFormat source,
                                   std::string_view doing) {
  const auto* list = pixel_formats_of(encoder);
  if (list == nullptr) return source;
  const auto* of = av_pix_fmt_desc_get(source);
  const int alpha = of != nullptr && (of->flags & AV_PIX_FMT_FLAG_ALPHA) != 0 ? 1 : 0;
  const auto nearest = avcodec_find_best_pix_fmt_of_list(list, source, alpha, nullptr);
  if (nearest == AV_PIX_FMT_NONE)
    throw error(errc::unsupported, doing, "the encoder has no pixel format for the picture");
  return nearest;
}

AVPixelFormat choose_pixel_format(const AVCodec& encoder, std::string_view name,
                                  std::string_view doing) {
  if (name.empty())
    return has_format(encoder, AV_PIX_FMT_YUV420P)
               ? AV_PIX_FMT_YUV420P
               : nearest_pixel_format(encoder, AV_PIX_FMT_RGB24, doing);
  const auto format = av_get_pix_fmt(std::string(name).c_str());
  if (format == AV_PIX_FMT_NONE)
    throw error(errc::invalid_argument, doing, "FFmpeg has no pixel format " + std::string(name));
  if (!has_format(encoder, format))
    throw error(errc::invalid_argument, doing,
                "the encoder does not have the pixel format " + std::string(name));
  return format;
}

// Codecs whose formats know one matrix: BT.601, of the full range (ITU-T T.871) or the limited one
// (RFC 9649, 2.4).
static bool is_bt601(AVCodecID codec) noexcept {
  return codec == AV_CODEC_ID_MJPEG || codec == AV_CODEC_ID_WEBP;
}

static AVColorSpace default_matrix(const AVCodecContext& context) noexcept {
  if (is_rgb(context.pix_fmt)) return AVCOL_SPC_RGB;
  if (is_bt601(context.codec_id)) return AVCOL_SPC_BT470BG;
  return usual_matrix(context.height);
}

static AVColorRange default_range(const AVCodecContext& context) noexcept {
  const bool full =
      is_rgb(context.pix_fmt) || is_grey(context.pix_fmt) || context.codec_id == AV_CODEC_ID_MJPEG;
  return full ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
}

static AVColorPrimaries primaries_of(AVColorSpace matrix) noexcept {
  switch (matrix) {
    case AVCOL_SPC_BT709: return AVCOL_PRI_BT709;
    case AVCOL_SPC_BT470BG: return AVCOL_PRI_BT470BG;
    case AVCOL_SPC_SMPTE170M: return AVCOL_PRI_SMPTE170M;
    case AVCOL_SPC_SMPTE240M: return AVCOL_PRI_SMPTE240M;
    case AVCOL_SPC_BT2020_NCL: return AVCOL_PRI_BT2020;
    default: return AVCOL_PRI_UNSPECIFIED;
  }
}

static AVColorTransferCharacteristic transfer_of(AVColorSpace matrix) noexcept {
  switch (matrix) {
    case AVCOL_SPC_BT709: return AVCOL_TRC_BT709;
    case AVCOL_SPC_BT470BG:
    case AVCOL_SPC_SMPTE170M: return AVCOL_TRC_SMPTE170M;
    case AVCOL_SPC_SMPTE240M: return AVCOL_TRC_SMPTE240M;
    case AVCOL_SPC_BT2020_NCL: return AVCOL_TRC_BT2020_10;
    default: return AVCOL_TRC_UNSPECIFIED;
  }
}

// The value of a name, by FFmpeg's function for it; `otherwise` if it is empty or "unknown".
template <class T, class F>
static T named(std::string_view name, const char* what, F find, T otherwise,
               std::string_view doing) {
  if (name.empty() || name == "unknown") return otherwise;
  const int value = find(std::string(name).c_str());
  if (value < 0)
    throw error(errc::invalid_argument, doing,
                "FFmpeg has no colour " + std::string(what) + " " + std::string(name));
  return static_cast<T>(value);
}

// That of a format of the same kind: RGB has no matrix, others have one.
static void check_matrix(const AVCodecContext& context, std::string_view doing) {
  if (is_rgb(context.pix_fmt) == (context.colorspace == AVCOL_SPC_RGB)) return;
  throw error(errc::invalid_argument, doing,
              std::string("the colour matrix ") + av_color_space_name(context.colorspace) +
                  " does not fit " + av_get_pix_fmt_name(context.pix_fmt));
}

void set_colours(AVCodecContext& context, const frame_colour& colour, std::string_view doing) {
  context.colorspace =
      named(colour.matrix, "matrix", av_color_space_from_name, default_matrix(context), doing);
  check_matrix(context, doing);
  context.color_range =
      named(colour.range, "range", av_color_range_from_name, default_range(context), doing);
  context.color_primaries = named(colour.primaries, "primaries", av_color_primaries_from_name,
                                  primaries_of(context.colorspace), doing);
  context.color_trc = named(colour.transfer, "transfer", av_color_transfer_from_name,
                            transfer_of(context.colorspace), doing);
  const auto* format = av_pix_fmt_desc_get(context.pix_fmt);
  if (format->log2_chroma_w == 0) return;
  context.chroma_sample_location =
      is_bt601(context.codec_id) ? AVCHROMA_LOC_CENTER : AVCHROMA_LOC_LEFT;
}

picture_format format_of_encoder(const AVCodecContext& context) noexcept {
  return {.format = context.pix_fmt,
          .matrix = context.colorspace,
          .range = context.color_range,
          .siting = context.chroma_sample_location};
}

}  // namespace lade::media
