#include <lade/error.hpp>
#include <lade/media/av/encoder.hpp>

#include "compat.hpp"
#include "open_encoder.hpp"
#include "picture_source.hpp"
#include "stream_fields.hpp"
#include "video_format.hpp"

#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

extern "C" {
#include <libavutil/pixdesc.h>
}

namespace lade::media {

static AVRational fraction_of_option(const rational& value, const char* name,
                                     std::string_view doing) {
  constexpr auto most = std::numeric_limits<int>::max();
  if (value > 0 && value.numerator() <= most && value.denominator() <= most)
    return av_rational_of(value);
  throw error(errc::invalid_argument, doing,
              std::string(name) + " must be above 0 and have terms of 31 bits");
}

static void check_size(const AVCodecContext& context, std::string_view doing) {
  constexpr int most = 32768;
  if (context.width < 1 || context.height < 1 || context.width > most || context.height > most)
    throw error(errc::invalid_argument, doing, "width and height must be 1 to 32768");
  const auto* format = av_pix_fmt_desc_get(context.pix_fmt);
  const bool odd = (context.width & ((1 << format->log2_chroma_w) - 1)) != 0 ||
                   (context.height & ((1 << format->log2_chroma_h) - 1)) != 0;
  if (odd && (context.codec_id == AV_CODEC_ID_H264 || context.codec_id == AV_CODEC_ID_HEVC))
    throw error(errc::invalid_argument, doing,
                fmt::format("pictures of {} have an even size", format->name));
}

// The limits of an encoder between key frames.
struct group_limits {
  int least_gop = 1;
  int most_gop = 1 << 20;  // 0: the encoder places key frames itself
  int most_b_frames = 0;
};

// - libxvid: no B-frames. FFmpeg receives one packet per frame, so packets would be lost.
// - vc2: only key frames, which Dirac's descriptor does not state.
// - libsvtav1: a gop of 1 selects its default.
static group_limits group_limits_of(const AVCodecContext& context) noexcept {
  const std::string_view name = context.codec->name;
  const auto* codec = avcodec_descriptor_get(context.codec_id);
  const int properties = codec == nullptr ? 0 : codec->props;
  const auto is_one_of = [&](auto... names) { return ((name == names) || ...); };
  if (is_one_of("vc2") || (properties & AV_CODEC_PROP_INTRA_ONLY) != 0) return {.most_gop = 1};
  if (is_one_of("apng", "gif", "msvideo1", "rpza", "zmbv")) return {.most_gop = 0};
  const bool reorders = (properties & AV_CODEC_PROP_REORDER) != 0 && !is_one_of("libxvid");
  return {.least_gop = is_one_of("libsvtav1") ? 2 : 1, .most_b_frames = reorders ? 16 : 0};
}

static std::string limits_text(int least, int most) {
  return fmt::format(" must be {} to {}", least, most);
}

static void set_gop(AVCodecContext& context, int gop, const group_limits& limits,
                    std::string_view doing) {
  const auto [least, most] = std::pair(limits.least_gop, limits.most_gop);
  if (most == 0) throw error(errc::invalid_argument, doing, "the encoder has no gop");
  if (most == 1 && gop != 1)
    throw error(errc::invalid_argument, doing, "gop must be 1: the encoder has key frames only");
  if (gop < least || gop > most)
    throw error(errc::invalid_argument, doing, "gop" + limits_text(least, most));
  context.gop_size = gop;
}

static void set_b_frames(AVCodecContext& context, int b_frames, const group_limits& limits,
                         std::string_view doing) {
  const int most = limits.most_b_frames;
  if (most == 0 && b_frames != 0)
    throw error(errc::invalid_argument, doing, "b_frames must be 0: the encoder has no B-frames");
  if (b_frames < 0 || b_frames > most)
    throw error(errc::invalid_argument, doing, "b_frames" + limits_text(0, most));
  context.max_b_frames = b_frames;
}

static void set_groups(AVCodecContext& context, const video_encode_options& options,
                       std::string_view doing) {
  const auto limits = group_limits_of(context);
  if (options.gop) set_gop(context, *options.gop, limits, doing);
  if (options.b_frames) set_b_frames(context, *options.b_frames, limits, doing);
}

static av_codec_context new_video_context(const video_encode_options& options,
                                          std::string_view doing) {
  if (options.threads < 1 || options.threads > 64)
    throw error(errc::invalid_argument, doing, "threads must be 1 to 64");
  if (options.tensor_layout > image_layout::chw)
    throw error(errc::invalid_argument, doing, "tensor_layout is no value of image_layout");
  const auto& encoder = find_av_encoder(options.encoder, AVMEDIA_TYPE_VIDEO);
  av_codec_context context(check_av(avcodec_alloc_context3(&encoder)));
  context->width = options.width;
  context->height = options.height;
  context->pix_fmt = choose_pixel_format(encoder, options.pixel_format, doing);
  check_size(*context, doing);
  context->framerate = fraction_of_option(options.frame_rate, "frame_rate", doing);
  const rational unit = options.time_base == 0 ? 1 / options.frame_rate : options.time_base;
  context->time_base = fraction_of_option(unit, "time_base", doing);
  context->sample_aspect_ratio = fraction_of_option(options.sample_aspect, "sample_aspect", doing);
  context->thread_count = options.threads;
  set_groups(*context, options, doing);
  set_colours(*context, options.colour, doing);
  return context;
}

class video_encoder::state {
 public:
  explicit state(const video_encode_options& options)
      : doing(fmt::format("encode video ({})", options.encoder)),
        encoder(new_video_context(options, doing),
                {options.bit_rate, options.quality, options.options}, doing),
        source(options.width, options.height, format_of_encoder(encoder.context())),
        frame_duration(1 / options.frame_rate),
        tensor_layout(options.tensor_layout) {}

  void send_at(av_frame next, const rational& time, const rational& duration) {
    const auto at = pts_of(time);
    if (last_pts && at <= *last_pts)
      throw error(errc::invalid_argument, doing,
                  fmt::format("the frame at {} s is not after the one before", to_string(time)));
    next->pts = at;
    const auto units = duration / encoder.stream().time_base();
    media::set_duration(*next, duration > 0 ? units.round() : 0);
    encoder.send(*next);
    last_pts = at;
    next_time = time + (duration > 0 ? duration : frame_duration);
  }

  std::int64_t pts_of(const rational& time) const {
    const auto units = time / encoder.stream().time_base();
    if (units.denominator() == 1) return units.numerator();
    throw error(errc::invalid_argument, doing,
                fmt::format("the time {} s is no multiple of the time base {}", to_string(time),
                            to_string(encoder.stream().time_base())));
  }

  void send_picture(const tensor& picture) {
    encoder.require_unfinished();
    const auto time = next_time;
    send_at(source.from_tensor(picture, tensor_layout, doing), time, frame_duration);
  }

  std::string doing;
  open_encoder encoder;
  picture_source source;
  rational frame_duration;
  image_layout tensor_layout;
  rational next_time;  // of the next tensor
  std::optional<std::int64_t> last_pts;
};

video_encoder::video_encoder(const video_encode_options& options)
    : state_(std::make_unique<state>(options)) {}
video_encoder::video_encoder(video_encoder&&) noexcept = default;
video_encoder& video_encoder::operator=(video_encoder&&) noexcept = default;
video_encoder::~video_encoder() = default;

const stream_info& video_encoder::stream() const noexcept { return state_->encoder.stream(); }

void video_encoder::send(const frame& next) {
  state_->encoder.require_unfinished();
  const auto time = next.time();
  if (!time) throw error(errc::invalid_argument, state_->doing, "the frame has no time");
  auto picture = state_->source.from_frame(next, state_->doing);
  check_colours_of_frame(next.get(), state_->encoder.context(), state_->doing);
  state_->send_at(std::move(picture), *time, next.duration());
}

void video_encoder::send(const tensor& pictures) {
  if (pictures.rank() != 4) return state_->send_picture(pictures);
  for (std::int64_t i = 0; i < pictures.shape()[0]; ++i) state_->send_picture(pictures[i]);
}

void video_encoder::finish() { state_->encoder.finish(); }
std::optional<packet> video_encoder::receive() { return state_->encoder.receive(); }

}  // namespace lade::media
