#include "encoder_quality.hpp"

#include <lade/error.hpp>
#include <lade/media/av.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>

#include <fmt/format.h>

extern "C" {
#include <libavutil/dict.h>
#include <libavutil/opt.h>
}

namespace lade::media {

template <std::size_t N>
static bool is_listed(const std::array<std::string_view, N>& names,
                      std::string_view name) noexcept {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Lossy codecs whose encoders ignore a bit rate.
static bool ignores_bit_rate(std::string_view codec) noexcept {
  constexpr auto names = std::to_array<std::string_view>(
      {"amv",        "aptx",   "aptx_hd",      "asv1",     "asv2",     "cfhd",   "cinepak",
       "cljr",       "codec2", "comfortnoise", "dfpwm",    "dvvideo",  "exr",    "flashsv2",
       "gsm",        "gsm_ms", "hap",          "jpeg2000", "jpegls",   "jpegxl", "msvideo1",
       "nellymoser", "prores", "ra_144",       "roq",      "roq_dpcm", "rpza",   "smc",
       "svq1",       "vbn",    "wavpack",      "webp",     "xface"});
  const bool counts = codec.starts_with("adpcm_") && codec != "adpcm_g726" &&
                      codec != "adpcm_g726le";  // whose bits per sample follow the bit rate
  return counts || codec.starts_with("pcm_") || is_listed(names, codec);
}

// Encoders for which a bit rate limits a quality.
static bool has_limited_quality(std::string_view encoder) noexcept {
  return encoder == "libvpx" || encoder == "libvpx-vp9" || encoder == "libaom-av1";
}

void check_rate_members(const AVCodec& encoder, const rate_members& members,
                        std::string_view doing) {
  const auto* codec = avcodec_descriptor_get(encoder.id);
  const bool has_rate = codec == nullptr || ((codec->props & AV_CODEC_PROP_LOSSY) != 0 &&
                                             !ignores_bit_rate(codec->name));
  if (members.bit_rate && !has_rate)
    throw error(errc::invalid_argument, doing, "the encoder has no bit_rate");
  if (members.bit_rate && members.quality && !has_limited_quality(encoder.name))
    throw error(errc::invalid_argument, doing,
                "bit_rate and quality are both set, but the encoder uses only one");
}

static const char* one_of(const rate_members& members) noexcept {
  if (members.quality) return "quality";
  return members.bit_rate ? "bit_rate" : nullptr;
}

const char* overridden_member(const AVCodec& encoder, const AVDictionaryEntry& entry,
                              const rate_members& members) noexcept {
  const std::string_view name = encoder.name;
  const std::string_view option = entry.key;
  constexpr auto dnxhd = std::to_array<std::string_view>({"dnxhd", "0"});  // other profiles have no
                                                                           // bit rate
  const bool is_dnxhr = name == "dnxhd" && option == "profile" && !is_listed(dnxhd, entry.value);
  if (is_dnxhr && members.bit_rate) return "bit_rate";
  const bool is_webp = name.starts_with("libwebp");  // its lossless mode has a quality, too
  if (option == "crf" && !members.quality && has_limited_quality(name)) return nullptr;
  const bool is_lossless = option == "lossless" && !is_webp && entry.value != std::string_view("0");
  if (option == "crf" || option == "qp" || is_lossless) return one_of(members);
  const bool is_of_quality = option == "abr" || (option == "quality" && is_webp);
  return is_of_quality && members.quality ? "quality" : nullptr;
}

const char* overridden_in_library(std::string_view key, std::string_view value,
                                  const rate_members& members) noexcept {
  if (key == "lossless" && value == "0") return nullptr;
  constexpr auto any =
      std::to_array<std::string_view>({"qp", "qp-constant", "lossless", "cq-level", "quantizer"});
  constexpr auto modes = std::to_array<std::string_view>({"rc", "end-usage"});
  if (is_listed(any, key)) return one_of(members);
  return is_listed(modes, key) && members.quality && !members.bit_rate ? "quality" : nullptr;
}

// The range of an encoder's qualities, and its option for them.
struct quality_scale {
  double best;
  double worst;
  const char* option = nullptr;  // if null, AVCodecContext::global_quality
};

// Encoders that use AVCodecContext::global_quality with AV_CODEC_FLAG_QSCALE. Others ignore the
// flag, or use another unit, such as libshine, libfdk_aac and hardware encoders.
static std::optional<quality_scale> scale_of_context(std::string_view encoder) {
  struct known_scale {
    std::string_view encoder;
    quality_scale scale;
  };
  constexpr quality_scale quantizer{.best = 2, .worst = 31};  // FFmpeg's qmin and qmax
  constexpr auto known = std::to_array<known_scale>({{"mjpeg", quantizer},
                                                     {"mpeg1video", quantizer},
                                                     {"mpeg2video", quantizer},
                                                     {"mpeg4", quantizer},
                                                     {"libxvid", quantizer},
                                                     {"msmpeg4v2", quantizer},
                                                     {"msmpeg4", quantizer},
                                                     {"h263", quantizer},
                                                     {"h263p", quantizer},
                                                     {"flv", quantizer},
                                                     {"wmv1", quantizer},
                                                     {"wmv2", quantizer},
                                                     {"libtheora", {.best = 10, .worst = 0}},
                                                     {"libmp3lame", {.best = 0, .worst = 9.999}},
                                                     {"libvorbis", {.best = 10, .worst = -1}},
                                                     {"aac", {.best = 10, .worst = 0.1}}});
  const auto* found = std::find_if(known.begin(), known.end(),
                                   [&](const auto& each) { return each.encoder == encoder; });
  if (found == known.end()) return std::nullopt;
  return found->scale;
}

// The scale of an option. libx264 clips qualities above 51 silently. Values below 0 mean "not set",
// and so does 0 where it is the default, as in libsvtav1.
static quality_scale scale_of_option(const AVCodec& encoder, const AVOption& option) {
  const bool lacks_zero = option.type == AV_OPT_TYPE_INT && option.default_val.i64 == 0;
  const double least = std::max(option.min, lacks_zero ? 1.0 : 0.0);
  if (option.name == std::string_view("quality"))
    return {.best = option.max, .worst = least, .option = option.name};
  const bool is_h26x = encoder.id == AV_CODEC_ID_H264 || encoder.id == AV_CODEC_ID_HEVC;
  return {.best = least,
          .worst = is_h26x ? std::min(option.max, 51.0) : option.max,
          .option = option.name};
}

static std::optional<quality_scale> scale_of_encoder(const AVCodecContext& context) {
  for (const char* key : {"crf", "quality"}) {
    if (context.codec->priv_class == nullptr) break;
    const auto* option = av_opt_find(context.priv_data, key, nullptr, 0, 0);
    const bool is_number = option != nullptr && option->unit == nullptr;
    if (is_number) return scale_of_option(*context.codec, *option);
  }
  return scale_of_context(context.codec->name);
}

// Formats independently of the locale.
static std::string digits_of(double value) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

void set_quality(AVCodecContext& context, double quality, AVDictionary*& options,
                 std::string_view doing) {
  const auto scale = scale_of_encoder(context);
  if (!scale) throw error(errc::invalid_argument, doing, "the encoder has no such quality");
  const auto [least, most] = std::minmax(scale->best, scale->worst);
  if (!(quality >= least && quality <= most))
    throw error(errc::invalid_argument, doing,
                fmt::format("quality must be from {} (best) to {}", digits_of(scale->best),
                            digits_of(scale->worst)));
  if (scale->option != nullptr) {
    check_av(av_dict_set(&options, scale->option, digits_of(quality).c_str(), 0), doing);
    return;
  }
  context.flags |= AV_CODEC_FLAG_QSCALE;
  context.global_quality = static_cast<int>(quality * FF_QP2LAMBDA);
}

}  // namespace lade::media
