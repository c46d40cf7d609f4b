#include "encoder_quality.hpp"

#include <lade/error.hpp>
#include <lade/media/av.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>

extern "C" {
#include <libavutil/dict.h>
#include <libavutil/opt.h>
}

namespace lade::media {

// The qualities of an encoder, and how it is told them.
struct quality_scale {
  double best;
  double worst;
  const char* option = nullptr;  // if null, AVCodecContext::global_quality
};

// Encoders that take a quality with AV_CODEC_FLAG_QSCALE. Others ignore the flag, or take a number
// in another unit, such as libshine, libfdk_aac and those of hardware.
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

// Of an option with a range. libx264 clips qualities beyond 51 without a word; values below 0
// mean that none is given.
static quality_scale scale_of_option(const AVCodec& encoder, const AVOption& option) {
  const double least = std::max(option.min, 0.0);
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

// In digits that do not depend on the locale.
static std::string digits_of(double value) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

static void set_new_option(AVDictionary*& options, const char* key, const std::string& value,
                           std::string_view doing) {
  if (av_dict_get(options, key, nullptr, 0) != nullptr)
    throw error(errc::invalid_argument, doing, std::string(key) + " is set twice");
  check_av(av_dict_set(&options, key, value.c_str(), 0), doing);
}

void set_quality(AVCodecContext& context, double quality, AVDictionary*& options,
                 std::string_view doing) {
  const auto scale = scale_of_encoder(context);
  if (!scale) throw error(errc::invalid_argument, doing, "the encoder has no such quality");
  const auto [least, most] = std::minmax(scale->best, scale->worst);
  if (!(quality >= least && quality <= most))
    throw error(
        errc::invalid_argument, doing,
        "quality must be from " + digits_of(scale->best) + " (best) to " + digits_of(scale->worst));
  if (scale->option != nullptr)
    return set_new_option(options, scale->option, digits_of(quality), doing);
  context.flags |= AV_CODEC_FLAG_QSCALE;
  context.global_quality = static_cast<int>(quality * FF_QP2LAMBDA);
}

}  // namespace lade::media
