#include <lade/cuda/nvdec/capabilities.hpp>
#include <lade/error.hpp>

#include "codings.hpp"
#include "context.hpp"

#include <array>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace lade::cuda {

static constexpr std::array<std::pair<std::string_view, cudaVideoCodec>, 6> nvdec_codecs{{
    {"h264", cudaVideoCodec_H264},
    {"hevc", cudaVideoCodec_HEVC},
    {"vp8", cudaVideoCodec_VP8},
    {"vp9", cudaVideoCodec_VP9},
    {"av1", cudaVideoCodec_AV1},
    {"mpeg2video", cudaVideoCodec_MPEG2},
}};

std::optional<cudaVideoCodec> nvdec_codec(std::string_view name) noexcept {
  for (const auto& [codec, number] : nvdec_codecs)
    if (codec == name) return number;
  return std::nullopt;
}

static std::string_view codec_name(cudaVideoCodec number) noexcept {
  for (const auto& [codec, each] : nvdec_codecs)
    if (each == number) return codec;
  return "another codec";
}

static constexpr std::array nvdec_chromas{400, 420, 422, 444};  // in the order of the interface

video_coding coding_of(const CUVIDEOFORMAT& sequence) noexcept {
  const auto chroma = static_cast<std::size_t>(sequence.chroma_format);
  return {.codec = codec_name(sequence.codec),
          .bits = 8 + sequence.bit_depth_luma_minus8,
          .chroma = chroma < nvdec_chromas.size() ? nvdec_chromas[chroma] : 0};
}

std::optional<cudaVideoSurfaceFormat> surface_format(const video_coding& coding) noexcept {
  const bool deep = coding.bits > 8;
  switch (coding.chroma) {
    case 420: return deep ? cudaVideoSurfaceFormat_P016 : cudaVideoSurfaceFormat_NV12;
    case 444: return deep ? cudaVideoSurfaceFormat_YUV444_16Bit : cudaVideoSurfaceFormat_YUV444;
    default: return std::nullopt;
  }
}

std::string to_string(const video_coding& coding) {
  const int a = coding.chroma / 100;
  const int b = coding.chroma / 10 % 10;
  const int c = coding.chroma % 10;
  return fmt::format("{} {}:{}:{} with {} bits", coding.codec, a, b, c, coding.bits);
}

// The limits that drivers have reported. Any thread.
struct cached_limits {
  using key = std::tuple<int, int, int, int>;  // device, codec, bits, chroma

  std::mutex mutex;
  std::map<key, video_limits> answers;
};

static cached_limits& limits_cache() noexcept {
  static cached_limits limits;
  return limits;
}

void forget_limits() noexcept {
  std::lock_guard lock(limits_cache().mutex);
  limits_cache().answers.clear();
}

// NVDEC's number of a chroma format; empty for unknown ones.
static std::optional<cudaVideoChromaFormat> nvdec_chroma(int chroma) noexcept {
  for (std::size_t i = 0; i < nvdec_chromas.size(); ++i)
    if (nvdec_chromas[i] == chroma) return static_cast<cudaVideoChromaFormat>(i);
  return std::nullopt;
}

static video_limits query_limits(device on, CUVIDDECODECAPS caps, cudaVideoSurfaceFormat format) {
  const primary_context context(on);
  const context_scope scope(context, "query the capabilities of NVDEC");
  check_nvdec(nvcuvid().get_decoder_caps(&caps), "query the capabilities of NVDEC");
  const bool maps = (caps.nOutputFormatMask >> format & 1) != 0;
  if (caps.bIsSupported == 0 || !maps) return {};
  return {.engines = caps.nNumNVDECs > 0 ? caps.nNumNVDECs : 1,  // 0: the driver is too old
          .min_width = caps.nMinWidth,
          .min_height = caps.nMinHeight,
          .max_width = static_cast<int>(caps.nMaxWidth),
          .max_height = static_cast<int>(caps.nMaxHeight),
          .max_macroblocks = caps.nMaxMBCount};
}

video_limits limits_of(device on, const video_coding& coding) {
  (void)nvcuvid();  // throws if there is no NVDEC
  const auto codec = nvdec_codec(coding.codec);
  const auto chroma = nvdec_chroma(coding.chroma);
  const auto format = surface_format(coding);
  if (!codec || !chroma || !format || coding.bits < 8 || coding.bits > 12) return {};
  auto& known = limits_cache();
  const cached_limits::key key{on.index(), *codec, coding.bits, coding.chroma};
  {
    std::lock_guard lock(known.mutex);
    if (auto found = known.answers.find(key); found != known.answers.end()) return found->second;
  }
  CUVIDDECODECAPS caps{};
  caps.eCodecType = *codec;
  caps.eChromaFormat = *chroma;
  caps.nBitDepthMinus8 = static_cast<unsigned>(coding.bits - 8);
  const auto limits = query_limits(on, caps, *format);
  std::lock_guard lock(known.mutex);
  return known.answers.emplace(key, limits).first->second;
}

std::string why_not_decodable(device on, const video_coding& coding, int width, int height) {
  const auto limits = limits_of(on, coding);
  if (limits.engines == 0) return "NVDEC of this GPU does not decode " + to_string(coding);
  const auto size = fmt::format("{} x {}", width, height);
  if (width < limits.min_width || height < limits.min_height)
    return fmt::format("NVDEC decodes pictures of at least {} x {}, not {}", limits.min_width,
                       limits.min_height, size);
  const auto macroblocks = std::int64_t{width} * height / 256;
  if (width > limits.max_width || height > limits.max_height ||
      macroblocks > limits.max_macroblocks)
    return fmt::format("NVDEC decodes pictures of at most {} x {} and {} macroblocks, not {}",
                       limits.max_width, limits.max_height, limits.max_macroblocks, size);
  return {};
}

}  // namespace lade::cuda
