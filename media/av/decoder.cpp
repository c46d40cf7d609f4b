#include <lade/error.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/stop_requested.hpp>

#include "av_messages.hpp"
#include "codec_pool.hpp"
#include "parameter_sets.hpp"
#include "stream_fields.hpp"
#include "window_cutter.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace lade::media {

// Whether FFmpeg skips exactly the pictures to which no other refers. In HEVC with temporal
// sub-layers, pictures of a higher sub-layer may refer to a "non-reference" picture (ITU-T H.265,
// 7.4.2.2). hvcC states the number of sub-layers (ISO/IEC 14496-15, 8.3.3.1).
static bool can_skip_unreferenced(const AVCodecParameters& parameters) noexcept {
  switch (parameters.codec_id) {
    case AV_CODEC_ID_H264:
    case AV_CODEC_ID_MPEG1VIDEO:
    case AV_CODEC_ID_MPEG2VIDEO:
    case AV_CODEC_ID_MPEG4: return true;
    case AV_CODEC_ID_HEVC: {
      constexpr int layers_at = 21;
      const bool has_header = parameters.extradata_size > layers_at && parameters.extradata[0] == 1;
      return has_header && (parameters.extradata[layers_at] >> 3 & 7) == 1;
    }
    default: return false;
  }
}

// A time in seconds with up to six decimals, without trailing zeros.
static std::string seconds_text(const rational& time) {
  auto text = std::to_string(time.to_double());
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

// Whether a packet has new parameters, as in joined Ogg files. In Vorbis, the lowest bit marks a
// header (Vorbis I, 4.2.1 and 4.3.1).
static bool changes_parameters(AVCodecID codec, const AVPacket& packet) noexcept {
  if (codec == AV_CODEC_ID_VORBIS && packet.size > 0 && (packet.data[0] & 1) != 0) return true;
  return av_packet_get_side_data(&packet, AV_PKT_DATA_NEW_EXTRADATA, nullptr) != nullptr ||
         av_packet_get_side_data(&packet, AV_PKT_DATA_PARAM_CHANGE, nullptr) != nullptr;
}

// Restricts two decoders of FFmpeg to one thread:
//   - MPEG-4 Part 2: with several threads, it aborts the process at the first damaged picture that
//     it must refuse. A thread drops the picture, but reports one.
//   - TIFF: its messages on damage are captured on the calling thread only.
static decode_options survivable(const stream_info& stream, decode_options options) {
  check_decode_options(options, "decode " + stream.name());
  const bool refuses = options.damage == damage_policy::refuse;
  const auto codec = stream.parameters().codec_id;
  if (codec == AV_CODEC_ID_TIFF || (codec == AV_CODEC_ID_MPEG4 && refuses)) options.threads = 1;
  return options;
}

// Whether FFmpeg's TIFF decoder has reported damage. Unknown tags are not damage.
static bool reports_damaged_tiff(const av_messages& messages) noexcept {
  const auto is_damage = [](std::string_view text) {
    return !text.empty() && !text.starts_with("Unknown or unsupported tag");
  };
  return is_damage(messages.first_error()) || is_damage(messages.last_error());
}

// Options in text form may ask for the same combination.
static void require_survivable(const AVCodecContext& codec, const std::string& doing) {
  const bool threaded = (codec.active_thread_type & FF_THREAD_FRAME) != 0;
  const bool refuses = (codec.err_recognition & AV_EF_EXPLODE) != 0;
  if (codec.codec_id == AV_CODEC_ID_MPEG4 && threaded && refuses)
    throw error(errc::unsupported, doing,
                "FFmpeg's decoder with several threads cannot refuse damage");
}

class decoder::state {
 public:
  state(const stream_info& decoded_stream, const decode_options& options)
      : stream(decoded_stream),
        damage(options.damage),
        skips(options.threads == 1 && can_skip_unreferenced(decoded_stream.parameters())),
        codec(pooled_codec::acquire(
            decoded_stream.parameters(), survivable(decoded_stream, options),
            av_rational_of(decoded_stream.time_base()), "decode " + decoded_stream.name())),
        stated_skip(codec->skip_frame) {
    require_survivable(*codec.get(), doing());
  }
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state() { codec->skip_frame = stated_skip; }

  // Counts damage, or throws, by the policy. The text has the time of the last packet.
  void report(std::error_code code, std::string_view reason) {
    codec.discard();
    if (damage == damage_policy::refuse) throw error(code, doing(), reason);
    ++damaged;
  }
  void report(int result, const av_messages& messages) {
    report(av_error_code(result), av_category().message(result) + messages.addition());
  }

  void record_idr(const packet& sent) {
    const auto& parameters = stream.parameters();
    if (parameters.codec_id == AV_CODEC_ID_H264 && !begins_anew && sent.is_key())
      begins_anew = begins_with_idr(parameters, sent.data());
  }

  // After a key frame of an open group of pictures of H.264, pictures may list references before
  // it, whether they use them or not.
  void suspect_last(const av_messages& messages) {
    if (stream.parameters().codec_id == AV_CODEC_ID_TIFF && reports_damaged_tiff(messages))
      report(errc::invalid_data, messages.last_error());
    if (!messages.names_missing_reference() || last_is_key) return;
    const bool is_h264 = stream.parameters().codec_id == AV_CODEC_ID_H264;
    if (!is_h264 || (begins_anew && last_pts == AV_NOPTS_VALUE))
      report(errc::invalid_data, "a picture to which it refers is missing");
    else if (begins_anew)
      suspects.insert(last_pts);
  }
  void report_suspect(std::int64_t pts) {
    if (suspects.erase(pts) > 0)
      report(errc::invalid_data, "a picture to which it refers is missing");
  }

  std::string doing() const {
    const auto text = "decode " + stream.name();
    try {
      const auto time = time_of(last_pts, stream.time_base());
      return time ? fmt::format("{} at {} s", text, seconds_text(*time)) : text;
    } catch (const error&) {
      return text + " at a time that does not fit into 64 bits";
    }
  }

  void reset() noexcept {
    avcodec_flush_buffers(codec.get());
    suspects.clear();
    begins_anew = false;
    finished = false;
  }

  stream_info stream;
  damage_policy damage;
  bool skips;
  bool finished = false;
  std::int64_t last_pts = AV_NOPTS_VALUE;
  bool last_is_key = false;
  bool begins_anew = false;         // an IDR picture was sent: no later one refers before it
  std::set<std::int64_t> suspects;  // times of packets with missing reference pictures
  std::uint64_t damaged = 0;
  av_frame next;  // the frame to receive into; reused if there was none
  pooled_codec codec;
  AVDiscard stated_skip;  // by the decoder's options
};

decoder::decoder(const stream_info& stream, const decode_options& options)
    : state_(std::make_unique<state>(stream, options)) {}
decoder::decoder(decoder&&) noexcept = default;
decoder& decoder::operator=(decoder&&) noexcept = default;
decoder::~decoder() = default;

const stream_info& decoder::stream() const noexcept { return state_->stream; }
std::uint64_t decoder::damaged() const noexcept { return state_->damaged; }
bool decoder::can_skip() const noexcept { return state_->skips; }

void decoder::skip_unreferenced(bool skip) {
  const bool skips = skip && state_->skips;
  const auto stated = state_->stated_skip;
  state_->codec->skip_frame = skips ? std::max(stated, AVDISCARD_NONREF) : stated;
}

void decoder::send(const packet& next) {
  if (stop_requested()) throw error(errc::stopped, state_->doing());
  if (state_->finished) state_->reset();
  state_->last_pts = next.get().pts != AV_NOPTS_VALUE ? next.get().pts : next.get().dts;
  state_->last_is_key = next.is_key();
  state_->record_idr(next);
  if ((next.get().flags & AV_PKT_FLAG_CORRUPT) != 0)
    state_->report(errc::invalid_data, "the packet is incomplete, or data before it are missing");
  if (may_have_parameter_sets(state_->stream.parameters(), next.data()) ||
      changes_parameters(state_->stream.parameters().codec_id, next.get()))
    state_->codec.discard();
  state_->codec.enter();
  const av_messages messages;
  const int result = avcodec_send_packet(state_->codec.get(), &next.get());
  if (result == AVERROR(EAGAIN))
    throw error(errc::invalid_argument, state_->doing(), "call receive() until it is empty");
  if (result < 0) state_->report(result, messages);
  state_->suspect_last(messages);
}

void decoder::finish() {
  if (std::exchange(state_->finished, true)) return;
  state_->codec.enter();
  const av_messages messages;
  check_av(avcodec_send_packet(state_->codec.get(), nullptr), state_->doing(), messages);
}

void decoder::reset() { state_->reset(); }

std::optional<frame> decoder::receive() {
  state_->codec.enter();
  const av_messages messages;
  constexpr int most_errors = 64;  // without a frame, which ends a loop in FFmpeg
  for (int errors = 0; errors < most_errors; ++errors) {
    auto& next = state_->next;
    if (!next) next.reset(check_av(av_frame_alloc()));
    const int result = avcodec_receive_frame(state_->codec.get(), next.get());
    state_->suspect_last(messages);
    if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) return std::nullopt;
    if (result < 0) {
      state_->report(result, messages);
      continue;
    }
    if ((next->flags & AV_FRAME_FLAG_CORRUPT) != 0 || next->decode_error_flags != 0)
      state_->report(errc::invalid_data, "the decoder had to repair the frame");
    state_->report_suspect(next->pts);
    return frame(std::move(next), state_->stream);
  }
  return std::nullopt;
}

std::vector<frame> decode(const packets& from, const decode_options& options,
                          std::uint64_t* damaged) {
  decoder by(from.stream(), options);
  window_cutter cutter(from.window());
  std::vector<frame> frames;
  const auto receive_all = [&] {
    while (auto next = by.receive()) cutter.append(std::move(*next), frames);
  };
  for (const auto& each : from) {
    by.send(each);
    receive_all();
  }
  by.finish();
  receive_all();
  if (damaged != nullptr) *damaged += by.damaged();
  return frames;
}

}  // namespace lade::media
