#include "stated_colours.hpp"

#include "picture_converter.hpp"

#include <lade/error.hpp>

#include <array>
#include <string_view>

#include <fmt/format.h>

extern "C" {
#include <libavutil/pixdesc.h>
}

namespace lade::media {

static constexpr std::array<int, 1> only_limited{AVCOL_RANGE_MPEG};
static constexpr std::array<int, 1> only_full{AVCOL_RANGE_JPEG};
static constexpr std::array<int, 1> only_bt601{AVCOL_SPC_BT470BG};
static constexpr std::array<int, 1> only_bt709{AVCOL_SPC_BT709};
static constexpr std::array<int, 1> only_bt709_primaries{AVCOL_PRI_BT709};
static constexpr std::array<int, 1> only_bt709_transfer{AVCOL_TRC_BT709};

static constexpr colour_rule rule_in_stream{.in_stream = true};
static constexpr colour_rule rule_limited{.in_stream = true, .values = only_limited};
static constexpr colour_rule rule_full{.in_stream = true, .values = only_full};
static constexpr colour_rule rule_bt601{.in_stream = true, .values = only_bt601};
static constexpr colour_rule rule_bt709{.in_stream = true, .values = only_bt709};

// x264 and x265 do not support EBU 3213.
static colour_rules rules_of_h26x() noexcept {
  static constexpr auto primaries =
      std::to_array<int>({AVCOL_PRI_BT709, AVCOL_PRI_BT470M, AVCOL_PRI_BT470BG, AVCOL_PRI_SMPTE170M,
                          AVCOL_PRI_SMPTE240M, AVCOL_PRI_FILM, AVCOL_PRI_BT2020, AVCOL_PRI_SMPTE428,
                          AVCOL_PRI_SMPTE431, AVCOL_PRI_SMPTE432});
  return {.matrix = rule_in_stream,
          .primaries = {.in_stream = true, .values = primaries},
          .transfer = rule_in_stream,
          .range = rule_in_stream};
}

static colour_rules rules_of_vp9() noexcept {
  static constexpr auto matrices =
      std::to_array<int>({AVCOL_SPC_BT709, AVCOL_SPC_BT470BG, AVCOL_SPC_SMPTE170M,
                          AVCOL_SPC_SMPTE240M, AVCOL_SPC_BT2020_NCL});
  return {.matrix = {.in_stream = true, .values = matrices},
          .primaries = {},
          .transfer = {},
          .range = rule_in_stream};
}

// Theora states primaries, which imply the matrix and transfer (Theora specification, 4.3).
static colour_rules rules_of_theora() noexcept {
  static constexpr auto primaries = std::to_array<int>({AVCOL_PRI_BT470BG, AVCOL_PRI_BT470M});
  static constexpr std::array<int, 1> matrix{AVCOL_SPC_SMPTE170M};
  return {.matrix = {.in_stream = true, .values = matrix},
          .primaries = {.in_stream = true, .values = primaries},
          .transfer = {.in_stream = true, .values = only_bt709_transfer},
          .range = rule_limited};
}

static colour_rules rules_of_prores() noexcept {
  static constexpr auto matrices =
      std::to_array<int>({AVCOL_SPC_BT709, AVCOL_SPC_SMPTE170M, AVCOL_SPC_BT2020_NCL});
  static constexpr auto primaries =
      std::to_array<int>({AVCOL_PRI_BT709, AVCOL_PRI_BT470BG, AVCOL_PRI_SMPTE170M, AVCOL_PRI_BT2020,
                          AVCOL_PRI_SMPTE431, AVCOL_PRI_SMPTE432});
  static constexpr auto transfers =
      std::to_array<int>({AVCOL_TRC_BT709, AVCOL_TRC_SMPTE2084, AVCOL_TRC_ARIB_STD_B67});
  return {.matrix = {.in_stream = true, .values = matrices},
          .primaries = {.in_stream = true, .values = primaries},
          .transfer = {.in_stream = true, .values = transfers},
          .range = rule_limited};
}

static colour_rules rules_of_vc2() noexcept {
  return {.matrix = rule_bt709,
          .primaries = {.in_stream = true, .values = only_bt709_primaries},
          .transfer = {.in_stream = true, .values = only_bt709_transfer},
          .range = rule_limited};
}

static colour_rules rules_of_utvideo() noexcept {
  static constexpr auto matrices = std::to_array<int>({AVCOL_SPC_BT470BG, AVCOL_SPC_BT709});
  return {.matrix = {.in_stream = true, .values = matrices},
          .primaries = {},
          .transfer = {},
          .range = {}};
}

colour_rules colour_rules_of(AVCodecID codec) noexcept {
  switch (codec) {
    case AV_CODEC_ID_H264:
    case AV_CODEC_ID_HEVC: return rules_of_h26x();
    case AV_CODEC_ID_AV1: return {rule_in_stream, rule_in_stream, rule_in_stream, rule_in_stream};
    case AV_CODEC_ID_MPEG2VIDEO:
      return {rule_in_stream, rule_in_stream, rule_in_stream, rule_limited};
    case AV_CODEC_ID_VP9: return rules_of_vp9();
    case AV_CODEC_ID_THEORA: return rules_of_theora();
    case AV_CODEC_ID_PRORES: return rules_of_prores();
    case AV_CODEC_ID_DIRAC: return rules_of_vc2();
    case AV_CODEC_ID_UTVIDEO: return rules_of_utvideo();
    case AV_CODEC_ID_DNXHD: return {rule_bt709, {}, {}, {}};
    case AV_CODEC_ID_VP8:
    case AV_CODEC_ID_WEBP: return {rule_bt601, {}, {}, rule_limited};
    case AV_CODEC_ID_AMV: return {rule_bt601, {}, {}, rule_full};
    case AV_CODEC_ID_MJPEG:
    case AV_CODEC_ID_LJPEG: return {rule_bt601, {}, {}, rule_in_stream};
    case AV_CODEC_ID_JPEGLS:
    case AV_CODEC_ID_SPEEDHQ: return {rule_bt601, {}, {}, {}};
    case AV_CODEC_ID_MPEG1VIDEO:
    case AV_CODEC_ID_MAGICYUV: return {{}, {}, {}, rule_limited};
    default: return {};
  }
}

bool is_same_matrix(AVColorSpace a, AVColorSpace b) noexcept {
  const auto is_601 = [](AVColorSpace each) {
    return each == AVCOL_SPC_BT470BG || each == AVCOL_SPC_SMPTE170M;
  };
  return a == b || (is_601(a) && is_601(b));
}

bool is_same_primaries(AVColorPrimaries a, AVColorPrimaries b) noexcept {
  const auto is_smpte_c = [](AVColorPrimaries each) {
    return each == AVCOL_PRI_SMPTE170M || each == AVCOL_PRI_SMPTE240M;
  };
  return a == b || (is_smpte_c(a) && is_smpte_c(b));
}

bool is_same_transfer(AVColorTransferCharacteristic a, AVColorTransferCharacteristic b) noexcept {
  const auto is_709 = [](AVColorTransferCharacteristic each) {
    return each == AVCOL_TRC_BT709 || each == AVCOL_TRC_SMPTE170M || each == AVCOL_TRC_BT2020_10 ||
           each == AVCOL_TRC_BT2020_12;
  };
  return a == b || (is_709(a) && is_709(b));
}

AVColorPrimaries primaries_of(AVColorSpace matrix) noexcept {
  switch (matrix) {
    case AVCOL_SPC_BT709: return AVCOL_PRI_BT709;
    case AVCOL_SPC_BT470BG: return AVCOL_PRI_BT470BG;
    case AVCOL_SPC_SMPTE170M: return AVCOL_PRI_SMPTE170M;
    case AVCOL_SPC_SMPTE240M: return AVCOL_PRI_SMPTE240M;
    case AVCOL_SPC_BT2020_NCL: return AVCOL_PRI_BT2020;
    default: return AVCOL_PRI_UNSPECIFIED;
  }
}

AVColorTransferCharacteristic transfer_of(AVColorSpace matrix) noexcept {
  switch (matrix) {
    case AVCOL_SPC_BT709: return AVCOL_TRC_BT709;
    case AVCOL_SPC_BT470BG:
    case AVCOL_SPC_SMPTE170M: return AVCOL_TRC_SMPTE170M;
    case AVCOL_SPC_SMPTE240M: return AVCOL_TRC_SMPTE240M;
    case AVCOL_SPC_BT2020_NCL: return AVCOL_TRC_BT2020_10;
    default: return AVCOL_TRC_UNSPECIFIED;
  }
}

AVColorSpace usual_matrix(AVPixelFormat format, int width, int height) noexcept {
  return is_rgb(format) ? AVCOL_SPC_RGB : usual_matrix(width, height);
}

AVColorRange usual_range(AVPixelFormat format) noexcept {
  const bool is_full = is_rgb(format) || is_grey(format) || is_full_range(format);
  return is_full ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
}

// Whether a container states the fields. MP4 states matrix, primaries and transfer together.
struct container_colours {
  bool matrix;
  bool range;
};
static container_colours colours_of_container(const AVOutputFormat& format,
                                              const AVCodecParameters& parameters) noexcept {
  const std::string_view name = format.name;
  if (name == "matroska" || name == "webm") return {.matrix = true, .range = true};
  const bool all = parameters.color_space != AVCOL_SPC_UNSPECIFIED &&
                   parameters.color_primaries != AVCOL_PRI_UNSPECIFIED &&
                   parameters.color_trc != AVCOL_TRC_UNSPECIFIED;
  if (name == "mp4") return {.matrix = all, .range = all};
  return {.matrix = all && name == "mov", .range = false};
}

void check_stated_colours(const AVOutputFormat& format, const AVCodecParameters& parameters,
                          const std::string& encoder, const std::string& doing) {
  const auto pixels = static_cast<AVPixelFormat>(parameters.format);
  const auto rules = colour_rules_of(parameters.codec_id);
  const auto states = colours_of_container(format, parameters);
  const auto check = [&](bool same, const char* field, const char* value, const colour_rule& rule,
                         bool stated) {
    if (same || rule.in_stream || stated) return;
    throw error(errc::unsupported, doing,
                fmt::format("neither {} files nor the encoder {} state the colour.{} {}",
                            format.name, encoder, field, value));
  };
  check(is_same_matrix(parameters.color_space,
                       usual_matrix(pixels, parameters.width, parameters.height)),
        "matrix", av_color_space_name(parameters.color_space), rules.matrix, states.matrix);
  check(parameters.color_range == usual_range(pixels), "range",
        av_color_range_name(parameters.color_range), rules.range, states.range);
  check(is_same_primaries(parameters.color_primaries, primaries_of(parameters.color_space)),
        "primaries", av_color_primaries_name(parameters.color_primaries), rules.primaries,
        states.matrix);
  check(is_same_transfer(parameters.color_trc, transfer_of(parameters.color_space)), "transfer",
        av_color_transfer_name(parameters.color_trc), rules.transfer, states.matrix);
}

}  // namespace lade::media
