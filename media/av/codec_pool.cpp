#include "codec_pool.hpp"

#include "av_messages.hpp"
#include "av_options.hpp"
#include "compat.hpp"
#include "frame_memory.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace lade::media {

// The idle contexts; the most recently used one is the last.
struct pooled_codec::store {
  struct idle {
    std::string key;
    std::unique_ptr<thread_memory> memory;
    av_codec_context context;
  };
  static constexpr std::size_t capacity = 32;

  std::mutex mutex;
  std::vector<idle> contexts;

  static store& instance() {
    static store all;
    return all;
  }
};

// Whether avcodec_flush_buffers resets the decoder completely. It does not for
//   - decoders of images: they keep palettes and pixels
//   - AAC: keeps the state of its noise generator
//   - Opus: drops the pre-skip (RFC 7845, 4.2) only in a new decoder
//   - MPEG-1, -2 and -4: keep fields of headers
static bool flushes_completely(AVCodecID codec) noexcept {
  constexpr std::array known{
      AV_CODEC_ID_H264,      AV_CODEC_ID_HEVC,      AV_CODEC_ID_VP8,       AV_CODEC_ID_VP9,
      AV_CODEC_ID_AV1,       AV_CODEC_ID_MP3,       AV_CODEC_ID_VORBIS,    AV_CODEC_ID_FLAC,
      AV_CODEC_ID_ALAC,      AV_CODEC_ID_PCM_U8,    AV_CODEC_ID_PCM_S8,    AV_CODEC_ID_PCM_S16LE,
      AV_CODEC_ID_PCM_S16BE, AV_CODEC_ID_PCM_S24LE, AV_CODEC_ID_PCM_S24BE, AV_CODEC_ID_PCM_S32LE,
      AV_CODEC_ID_PCM_S32BE, AV_CODEC_ID_PCM_F32LE, AV_CODEC_ID_PCM_F32BE, AV_CODEC_ID_PCM_F64LE,
      AV_CODEC_ID_PCM_F64BE, AV_CODEC_ID_PCM_MULAW, AV_CODEC_ID_PCM_ALAW};
  return std::find(known.begin(), known.end(), codec) != known.end();
}

template <class T>
static void append_bytes(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

static void append_text(std::string& key, std::string_view text) {
  append_bytes(key, text.size());
  key.append(text);
}

static std::string codec_key(const AVCodecParameters& parameters, const decode_options& options,
                             const AVRational& time_base) {
  std::string key;
  for (const int value : {int(parameters.codec_id),
                          int(parameters.codec_tag),
                          parameters.format,
                          parameters.width,
                          parameters.height,
                          parameters.profile,
                          parameters.level,
                          int(parameters.field_order),
                          int(parameters.color_range),
                          int(parameters.color_primaries),
                          int(parameters.color_trc),
                          int(parameters.color_space),
                          int(parameters.chroma_location),
                          parameters.video_delay,
                          parameters.sample_rate,
                          parameters.block_align,
                          parameters.frame_size,
                          parameters.bits_per_coded_sample,
                          parameters.bits_per_raw_sample,
                          parameters.sample_aspect_ratio.num,
                          parameters.sample_aspect_ratio.den,
                          parameters.initial_padding,
                          parameters.trailing_padding,
                          parameters.seek_preroll,
                          int(parameters.ch_layout.order),
                          parameters.ch_layout.nb_channels,
                          time_base.num,
                          time_base.den,
                          options.threads,
                          int(options.damage)})
    append_bytes(key, value);
  append_bytes(key, parameters.bit_rate);
  append_bytes(
      key, parameters.ch_layout.order == AV_CHANNEL_ORDER_NATIVE ? parameters.ch_layout.u.mask : 0);
  append_bytes(key, options.max_pixels);
  append_text(key, options.decoder);
  append_text(key, options.options);
  append_newer_parameters(key, parameters);
  key.append(reinterpret_cast<const char*>(parameters.extradata),
             static_cast<std::size_t>(parameters.extradata_size));
  return key;
}

static const AVCodec& find_av_decoder_of_name(std::string_view name, std::string_view doing) {
  const auto* found = avcodec_find_decoder_by_name(std::string(name).c_str());
  if (found == nullptr)
    throw error(errc::unsupported, doing, "FFmpeg has no decoder of the name " + std::string(name));
  return *found;
}

void check_decode_options(const decode_options& options, std::string_view doing) {
  if (options.threads < 1 || options.threads > 64)
    throw error(errc::invalid_argument, doing, "threads must be 1 to 64");
  if (options.max_pixels < 1)
    throw error(errc::invalid_argument, doing, "max_pixels must be above 0");
  if (!options.decoder.empty()) (void)find_av_decoder_of_name(options.decoder, doing);
}

static const AVCodec& find_av_decoder(AVCodecID codec, std::string_view name,
                                      std::string_view doing) {
  const auto* found =
      name.empty() ? avcodec_find_decoder(codec) : &find_av_decoder_of_name(name, doing);
  if (found == nullptr)
    throw error(errc::unsupported, doing,
                std::string("FFmpeg has no decoder for ") + avcodec_get_name(codec));
  if (found->id != codec)
    throw error(errc::invalid_argument, doing,
                fmt::format("{} does not decode {}", name, avcodec_get_name(codec)));
  return *found;
}

static void open_codec(AVCodecContext& context, const AVCodec& decoder,
                       const decode_options& options, std::string_view doing) {
  const av_messages messages;
  auto parsed = parse_av_options(options.options, doing);
  AVDictionary* left = parsed.release();
  const int result = avcodec_open2(&context, &decoder, &left);
  parsed.reset(left);
  check_av(result, doing, messages);
  refuse_unknown_options(left, doing);
}

// The error recognition for damage_policy::refuse.
//   - H.264: not explode. References to absent pictures are errors to it, but normal after a key
//     frame of an open group of pictures. It flags the frames that it conceals.
//   - TIFF: not explode. Unknown tags are errors to it; `decoder` reads its messages instead.
static int strict_recognition(AVCodecID codec) noexcept {
  constexpr int check = AV_EF_CRCCHECK | AV_EF_BITSTREAM;
  const bool takes_for_errors = codec == AV_CODEC_ID_H264 || codec == AV_CODEC_ID_TIFF;
  return takes_for_errors ? check : check | AV_EF_EXPLODE;
}

// libavcodec aborts the process if these do not hold.
static void check_decodable(const AVCodecParameters& parameters, std::string_view doing) {
  if (parameters.codec_type != AVMEDIA_TYPE_VIDEO && parameters.codec_type != AVMEDIA_TYPE_AUDIO)
    throw error(errc::unsupported, doing, "only video and audio are decoded");
  if (parameters.video_delay < 0 || parameters.video_delay > most_reordered_pictures)
    throw error(errc::invalid_data, doing,
                fmt::format("it states to reorder {} pictures", parameters.video_delay));
}

static av_codec_context new_context(const AVCodecParameters& parameters,
                                    const decode_options& options, const AVRational& time_base,
                                    thread_memory* memory, std::string_view doing) {
  check_decode_options(options, doing);
  check_decodable(parameters, doing);
  const auto& decoder = find_av_decoder(parameters.codec_id, options.decoder, doing);
  av_codec_context context(check_av(avcodec_alloc_context3(&decoder)));
  check_av(avcodec_parameters_to_context(context.get(), &parameters), doing);
  context->thread_count = options.threads;
  context->pkt_timebase = time_base;
  context->max_pixels = options.max_pixels;
  context->flags |= AV_CODEC_FLAG_UNALIGNED;  // crop exactly, also to unaligned columns
  if (options.threads > 1) context->log_level_offset = AV_LOG_TRACE;  // silences its threads
  if (options.damage == damage_policy::refuse)
    context->err_recognition = strict_recognition(parameters.codec_id);
  context->opaque = memory;
  allow_calls_of_threads(*context);
  if ((decoder.capabilities & AV_CODEC_CAP_DR1) != 0) context->get_buffer2 = allocate_frame_memory;
  open_codec(*context, decoder, options, doing);
  return context;
}

pooled_codec pooled_codec::acquire(const AVCodecParameters& parameters,
                                   const decode_options& options, const AVRational& time_base,
                                   std::string_view doing) {
  auto key = codec_key(parameters, options, time_base);
  auto& idle = store::instance();
  {
    const std::lock_guard lock(idle.mutex);
    const auto found = std::find_if(idle.contexts.rbegin(), idle.contexts.rend(),
                                    [&](const auto& each) { return each.key == key; });
    if (found != idle.contexts.rend()) {
      auto memory = std::move(found->memory);
      auto context = std::move(found->context);
      idle.contexts.erase(std::next(found).base());
      return {std::move(memory), std::move(context), std::move(key), true};
    }
  }
  auto memory = options.threads > 1 ? std::make_unique<thread_memory>() : nullptr;
  auto context = new_context(parameters, options, time_base, memory.get(), doing);
  const bool reusable = flushes_completely(parameters.codec_id);
  return {std::move(memory), std::move(context), std::move(key), reusable};
}

pooled_codec::~pooled_codec() {
  if (!context_ || !reusable_) return;
  avcodec_flush_buffers(context_.get());
  if (memory_) memory_->leave();
  auto& idle = store::instance();
  store::idle closed;  // destroyed after the lock: closing may wait for threads
  const std::lock_guard lock(idle.mutex);
  if (idle.contexts.size() == store::capacity) {
    closed = std::move(idle.contexts.front());
    idle.contexts.erase(idle.contexts.begin());
  }
  idle.contexts.push_back({std::move(key_), std::move(memory_), std::move(context_)});
}

void pooled_codec::release_idle() noexcept {
  auto& idle = store::instance();
  const std::lock_guard lock(idle.mutex);
  idle.contexts.clear();
  idle.contexts.shrink_to_fit();
}

}  // namespace lade::media
