#include "open_encoder.hpp"

#include "av_messages.hpp"
#include "av_options.hpp"
#include "compat.hpp"
#include "encoder_options.hpp"
#include "encoder_quality.hpp"
#include "stream_fields.hpp"

#include <lade/error.hpp>
#include <lade/stop_requested.hpp>

#include <utility>

#include <fmt/format.h>

extern "C" {
#include <libavutil/dict.h>
}

namespace lade::media {

const AVCodec& find_av_encoder(std::string_view name, AVMediaType kind) {
  const auto doing = "open encoder " + std::string(name);
  const auto* found = avcodec_find_encoder_by_name(std::string(name).c_str());
  if (found == nullptr) {
    const auto* codec = avcodec_descriptor_get_by_name(std::string(name).c_str());
    if (codec != nullptr) found = avcodec_find_encoder(codec->id);
  }
  if (found == nullptr) throw error(errc::unsupported, doing, "FFmpeg has no such encoder");
  if (found->type != kind)
    throw error(errc::invalid_argument, doing,
                std::string("it is one of ") + av_get_media_type_string(found->type));
  return *found;
}

static void open_av_encoder(AVCodecContext& context, const encoder_settings& settings,
                            std::string_view doing) {
  auto parsed = parse_av_options(settings.options, doing);
  const rate_members members{.bit_rate = settings.bit_rate > 0,
                             .quality = settings.quality.has_value()};
  check_rate_members(*context.codec, members, doing);
  check_encoder_options(*context.codec, parsed.get(), members, doing);
  AVDictionary* options = parsed.release();
  const auto stated = stated_format(context);
  av_messages messages;
  messages.keep_warnings();
  int result = 0;
  try {
    if (settings.quality) set_quality(context, *settings.quality, options, doing);
    silence_library(*context.codec, options);
    result = avcodec_open2(&context, context.codec, &options);
  } catch (...) {
    parsed.reset(options);
    throw;
  }
  parsed.reset(options);
  refuse_ignored_options(messages, doing);
  check_av(result, doing, messages);
  refuse_unknown_options(options, doing);
  if (stated_format(context) != stated)
    throw error(errc::invalid_argument, doing,
                fmt::format("the options \"{}\" change the format that other members state",
                            settings.options));
}

static stream_info stream_of_encoder(const AVCodecContext& context) {
  auto fields = std::make_shared<stream_info::fields>();
  fields->file = "encoded " + std::string(av_get_media_type_string(context.codec_type));
  fields->parameters.reset(check_av(avcodec_parameters_alloc()));
  check_av(avcodec_parameters_from_context(fields->parameters.get(), &context),
           "copy parameters of an encoder");
  fields->time_base = rational_of(context.time_base);
  fields->separate_headers = true;
  fields->encoder = context.codec->name;
  if (context.framerate.num > 0) fields->frame_rate = rational_of(context.framerate);
  const auto aspect = context.sample_aspect_ratio;
  if (aspect.num > 0) fields->sample_aspect = rational_of(aspect);
  return stream_info(std::move(fields));
}

static av_codec_context opened(av_codec_context context, const encoder_settings& settings,
                               std::string_view doing) {
  if (settings.bit_rate < 0)
    throw error(errc::invalid_argument, doing, "bit_rate must not be negative");
  if (settings.bit_rate > 0) context->bit_rate = settings.bit_rate;
  context->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  open_av_encoder(*context, settings, doing);
  const bool has_threads = context->thread_count > 1;  // FFmpeg would print their messages
  if (has_threads) context->log_level_offset = AV_LOG_TRACE;
  return context;
}

open_encoder::open_encoder(av_codec_context context, const encoder_settings& settings,
                           std::string doing)
    : doing_(std::move(doing)),
      context_(opened(std::move(context), settings, doing_)),
      stream_(stream_of_encoder(*context_)) {}

// libsvtav1 blocks forever if it is closed before its first picture.
static void send_blank_picture(AVCodecContext& context) noexcept {
  const av_frame blank(av_frame_alloc());
  if (!blank) return;
  blank->width = context.width;
  blank->height = context.height;
  blank->format = context.pix_fmt;
  blank->pts = 0;
  if (av_frame_get_buffer(blank.get(), 0) >= 0) (void)avcodec_send_frame(&context, blank.get());
}

open_encoder::~open_encoder() {
  const av_messages messages;  // captures the summary that libx264 logs
  if (sent_ == 0 && context_->codec->name == std::string_view("libsvtav1"))
    send_blank_picture(*context_);
  context_.reset();
}

void open_encoder::require_unfinished() const {
  if (finished_) throw error(errc::invalid_argument, doing_, "the encoder has finished");
}

// Some encoders, such as those of ProRes, use the colours of frames.
static void state_colours(AVFrame& frame, const AVCodecContext& context) noexcept {
  if (context.codec_type != AVMEDIA_TYPE_VIDEO) return;
  frame.colorspace = context.colorspace;
  frame.color_range = context.color_range;
  frame.color_primaries = context.color_primaries;
  frame.color_trc = context.color_trc;
  frame.chroma_location = context.chroma_sample_location;
}

void open_encoder::send(AVFrame& next) {
  require_unfinished();
  if (stop_requested()) throw error(errc::stopped, doing_);
  next.pict_type = AV_PICTURE_TYPE_NONE;
  next.quality = context_->global_quality;
  state_colours(next, *context_);
  if (const auto duration = duration_of(next); duration > 0) durations_[next.pts] = duration;
  const av_messages messages;
  check_av(avcodec_send_frame(context_.get(), &next), doing_, messages);
  ++sent_;
  take_packets();
}

void open_encoder::finish() {
  const bool empty = context_->codec_type == AVMEDIA_TYPE_VIDEO && sent_ == 0;
  if (std::exchange(finished_, true) || empty) return;
  const av_messages messages;
  check_av(avcodec_send_frame(context_.get(), nullptr), doing_, messages);
  take_packets();
  require_all_frames();
}

// Whether one packet has several frames, for instance a whole animation.
static bool joins_frames(std::string_view encoder) noexcept {
  return encoder == "libwebp_anim" || encoder.starts_with("a64multi");
}

void open_encoder::require_all_frames() const {
  if (context_->codec_type != AVMEDIA_TYPE_VIDEO || drained_ >= sent_ ||
      joins_frames(context_->codec->name))
    return;
  throw error(errc::failed, doing_,
              fmt::format("the encoder made {} packets of {} frames", drained_, sent_));
}

// Before FFmpeg 6.0, video encoders do not set durations.
void open_encoder::set_duration_of(AVPacket& next) {
  const auto found = durations_.find(next.pts);
  if (found == durations_.end()) return;
  if (next.duration == 0) next.duration = found->second;
  durations_.erase(found);
}

// Throws for an empty packet. libtheora returns one for a picture that equals the previous one.
void open_encoder::require_content(const AVPacket& next) const {
  if (context_->codec_type != AVMEDIA_TYPE_VIDEO || next.size > 0 || next.side_data_elems > 0)
    return;
  throw error(
      errc::unsupported, doing_,
      fmt::format("the packet of the picture at {} s is empty, and files lose such packets: the "
                  "picture repeats the one before",
                  to_string(rational(next.pts) * stream_.time_base())));
}

// libx265 sets no decoding times if there are only one or two frames.
void open_encoder::mend_decoding_time(AVPacket& next) const noexcept {
  constexpr std::uint64_t too_few = 2;
  if (context_->codec_id == AV_CODEC_ID_HEVC && finished_ && sent_ <= too_few) next.dts = next.pts;
}

void open_encoder::take_packets() {
  const av_messages messages;
  while (true) {
    av_packet next(check_av(av_packet_alloc()));
    const int result = avcodec_receive_packet(context_.get(), next.get());
    if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) return;
    check_av(result, doing_, messages);
    require_content(*next);
    ++drained_;
    set_duration_of(*next);
    mend_decoding_time(*next);
    next->time_base = context_->time_base;
    ready_.emplace_back(std::move(next));
  }
}

std::optional<packet> open_encoder::receive() {
  if (ready_.empty()) return std::nullopt;
  auto next = std::move(ready_.front());
  ready_.pop_front();
  return next;
}

}  // namespace lade::media
