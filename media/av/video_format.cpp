#include "video_format.hpp"

#include "compat.hpp"
#include "stated_colours.hpp"

#include <lade/error.hpp>

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include <fmt/format.h>

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
  const auto* descriptor = av_pix_fmt_desc_get(source);
  const int alpha =
      descriptor != nullptr && (descriptor->flags & AV_PIX_FMT_FLAG_ALPHA) != 0 ? 1 : 0;
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

// Whether chroma is centred: in JPEG (ITU-T T.871) and WebP (RFC 9649, 2.4).
static bool is_centred(AVCodecID codec) noexcept {
  return codec == AV_CODEC_ID_MJPEG || codec == AV_CODEC_ID_WEBP;
}

static AVColorRange default_range(const AVCodecContext& context) noexcept {
  return context.codec_id == AV_CODEC_ID_MJPEG ? AVCOL_RANGE_JPEG : usual_range(context.pix_fmt);
}

// A field of frame_colour, and FFmpeg's function for the names of its values.
template <class T>
struct colour_field {
  const char* name;
  const char* (*name_of)(T);
  int values;
};

static constexpr colour_field<AVColorSpace> matrix_field{"matrix", av_color_space_name,
                                                         AVCOL_SPC_NB};
static constexpr colour_field<AVColorRange> range_field{"range", av_color_range_name,
                                                        AVCOL_RANGE_NB};
static constexpr colour_field<AVColorPrimaries> primaries_field{
    "primaries", av_color_primaries_name, AVCOL_PRI_NB};
static constexpr colour_field<AVColorTransferCharacteristic> transfer_field{
    "transfer", av_color_transfer_name, AVCOL_TRC_NB};

static bool is_given(std::string_view colour) noexcept {
  return !colour.empty() && colour != "unknown" && colour != "reserved";
}

// Compares whole names: FFmpeg's functions compare only prefixes.
template <class T>
static T named_colour(const colour_field<T>& field, std::string_view name, std::string_view doing) {
  for (int i = 0; i < field.values; ++i) {
    const char* each = field.name_of(static_cast<T>(i));
    if (each != nullptr && each == name) return static_cast<T>(i);
  }
  throw error(errc::invalid_argument, doing,
              fmt::format("FFmpeg has no colour {} {}", field.name, name));
}

static bool is_same(AVColorSpace a, AVColorSpace b) noexcept { return is_same_matrix(a, b); }
static bool is_same(AVColorPrimaries a, AVColorPrimaries b) noexcept {
  return is_same_primaries(a, b);
}
static bool is_same(AVColorRange a, AVColorRange b) noexcept { return a == b; }
static bool is_same(AVColorTransferCharacteristic a, AVColorTransferCharacteristic b) noexcept {
  return is_same_transfer(a, b);
}

// The rule's value with the same meaning as `value`; empty if there is none.
template <class T>
static std::optional<T> stated_value(const colour_rule& rule, T value) {
  const auto& values = rule.values;
  const bool has = std::find(values.begin(), values.end(), static_cast<int>(value)) != values.end();
  if (has || values.empty()) return value;
  for (const int each : values)
    if (is_same(static_cast<T>(each), value)) return static_cast<T>(each);
  return std::nullopt;
}

// The colour with this name. For an empty name, `usual`, or the first value that the stream can
// state.
template <class T>
static T chosen_colour(const colour_field<T>& field, std::string_view name, T usual,
                       const colour_rule& rule, std::string_view doing) {
  const bool has_name = is_given(name);
  const auto value = has_name ? named_colour(field, name, doing) : usual;
  if (const auto stated = stated_value(rule, value)) return *stated;
  if (!has_name) return static_cast<T>(rule.values.front());
  std::string names;
  for (const int each : rule.values) names.append(" ").append(field.name_of(static_cast<T>(each)));
  throw error(
      errc::invalid_argument, doing,
      fmt::format("the encoder does not state the colour.{} {}, but:{}", field.name, name, names));
}

// Checks that the colours fit the format: RGB has no matrix and the full range, as do formats that
// imply it.
static void check_fit(const AVCodecContext& context, std::string_view doing) {
  const auto refuse = [&](const char* label, const char* name) {
    throw error(errc::invalid_argument, doing,
                fmt::format("the colour {} {} does not fit {}", label, name,
                            av_get_pix_fmt_name(context.pix_fmt)));
  };
  const bool rgb = is_rgb(context.pix_fmt);
  if (rgb != (context.colorspace == AVCOL_SPC_RGB))
    refuse("matrix", av_color_space_name(context.colorspace));
  if ((rgb || is_full_range(context.pix_fmt)) && context.color_range != AVCOL_RANGE_JPEG)
    refuse("range", av_color_range_name(context.color_range));
}

static colour_rules rules_of_encoder(const AVCodecContext& context) noexcept {
  auto rules = colour_rules_of(context.codec_id);
  if (is_rgb(context.pix_fmt)) rules.matrix = rules.range = {};
  return rules;
}

static void set_chroma_site(AVCodecContext& context) noexcept {
  if (av_pix_fmt_desc_get(context.pix_fmt)->log2_chroma_w == 0) return;
  context.chroma_sample_location =
      is_centred(context.codec_id) ? AVCHROMA_LOC_CENTER : AVCHROMA_LOC_LEFT;
}

void set_colours(AVCodecContext& context, const frame_colour& colour, std::string_view doing) {
  const auto rules = rules_of_encoder(context);
  const auto matrix = usual_matrix(context.pix_fmt, context.width, context.height);
  context.colorspace = chosen_colour(matrix_field, colour.matrix, matrix, rules.matrix, doing);
  context.color_range =
      chosen_colour(range_field, colour.range, default_range(context), rules.range, doing);
  check_fit(context, doing);
  context.color_primaries = chosen_colour(primaries_field, colour.primaries,
                                          primaries_of(context.colorspace), rules.primaries, doing);
  context.color_trc = chosen_colour(transfer_field, colour.transfer,
                                    transfer_of(context.colorspace), rules.transfer, doing);
  set_chroma_site(context);
}

template <class T>
static void check_equal(const colour_field<T>& field, T of_frame, T of_stream,
                        std::string_view doing) {
  const char* name = field.name_of(of_frame);
  const bool stated = name != nullptr && is_given(name);
  if (!stated || is_same(of_frame, of_stream)) return;
  throw error(
      errc::invalid_argument, doing,
      fmt::format(
          "the frame states the {} {}, the stream {}, and they are not converted: set colour.{}",
          field.name, name, field.name_of(of_stream), field.name));
}

void check_colours_of_frame(const AVFrame& next, const AVCodecContext& encoder,
                            std::string_view doing) {
  check_equal(primaries_field, next.color_primaries, encoder.color_primaries, doing);
  check_equal(transfer_field, next.color_trc, encoder.color_trc, doing);
}

picture_format format_of_encoder(const AVCodecContext& context) noexcept {
  return {.format = context.pix_fmt,
          .matrix = context.colorspace,
          .range = context.color_range,
          .siting = context.chroma_sample_location};
}

}  // namespace lade::media
