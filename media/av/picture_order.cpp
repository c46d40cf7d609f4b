#include "picture_order.hpp"

#include "av_messages.hpp"
#include "parameter_sets.hpp"

#include <lade/media/av.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

extern "C" {
#include <libavcodec/avcodec.h>
}

namespace lade::media {

static bool may_reorder(AVCodecID codec) noexcept {
  constexpr std::array known{AV_CODEC_ID_H264, AV_CODEC_ID_HEVC, AV_CODEC_ID_MPEG1VIDEO,
                             AV_CODEC_ID_MPEG2VIDEO, AV_CODEC_ID_MPEG4};
  return std::find(known.begin(), known.end(), codec) != known.end();
}

static bool times_rise(std::span<const indexed_packet> packets) noexcept {
  std::int64_t last = INT64_MIN;
  return std::all_of(packets.begin(), packets.end(), [&](const auto& each) {
    return !each.shown || each.pts > std::exchange(last, each.pts);
  });
}

bool may_have_times_of_decoding(const stream_info& stream,
                                std::span<const indexed_packet> packets) {
  const auto& parameters = stream.parameters();
  return may_reorder(parameters.codec_id) && times_rise(packets) &&
         !states_coding_order(parameters);
}

// Whether an MPEG packet has one picture, which is no B-picture: B-pictures are shown before the
// preceding picture. AVI files of MPEG-4 have packets of two pictures, one of them a B-picture
// ("packed").
static bool has_one_forward_picture(AVCodecID codec, std::span<const std::byte> packet) {
  const auto picture = codec == AV_CODEC_ID_MPEG4 ? std::byte{0xb6} : std::byte{0};
  int pictures = 0;
  for (auto rest = after_start_code(packet); rest.size() > 2; rest = after_start_code(rest)) {
    if (rest[0] != picture) continue;
    // vop_coding_type (ISO/IEC 14496-2, 6.2.5), picture_coding_type (ISO/IEC 13818-2, 6.2.3).
    const bool is_b = codec == AV_CODEC_ID_MPEG4 ? (rest[1] & std::byte{0xc0}) == std::byte{0x80}
                                                 : (rest[2] & std::byte{0x38}) == std::byte{0x18};
    if (is_b) return false;
    ++pictures;
  }
  // In MPEG-2, two fields may be two pictures.
  return pictures == 1 || (pictures == 2 && codec == AV_CODEC_ID_MPEG2VIDEO);
}

using av_codec_parser = std::unique_ptr<AVCodecParserContext, decltype(&av_parser_close)>;

// Reads picture order counts (ITU-T H.264, 8.2.1; H.265, 8.3.1).
class order_parser {
 public:
  explicit order_parser(const AVCodecParameters& parameters)
      : parser_(check_av(av_parser_init(parameters.codec_id)), av_parser_close),
        context_(check_av(avcodec_alloc_context3(nullptr))) {
    check_av(avcodec_parameters_to_context(context_.get(), &parameters), "parse pictures");
    parser_->flags |= PARSER_FLAG_COMPLETE_FRAMES;
  }

  int count_of(const AVPacket& packet) {
    std::uint8_t* data = nullptr;
    int size = 0;
    parser_->output_picture_number = INT32_MIN;
    av_parser_parse2(parser_.get(), context_.get(), &data, &size, packet.data, packet.size,
                     packet.pts, packet.dts, packet.pos);
    return parser_->output_picture_number;
  }

 private:
  av_codec_parser parser_;
  av_codec_context context_;
};

// Whether picture order counts increase. They restart at key frames.
static bool counts_rise(const stream_info& stream, const std::vector<packet>& packets) {
  const av_messages messages;
  order_parser parser(stream.parameters());
  int last = INT32_MIN;
  return std::all_of(packets.begin(), packets.end(), [&](const packet& each) {
    const int count = parser.count_of(each.get());
    const bool rises = count > last || (each.is_key() && count != INT32_MIN);
    last = count;
    return rises;
  });
}

bool shows_packets_in_order(const stream_info& stream, const std::vector<packet>& packets) {
  const auto codec = stream.parameters().codec_id;
  if (codec == AV_CODEC_ID_H264 || codec == AV_CODEC_ID_HEVC) return counts_rise(stream, packets);
  return std::all_of(packets.begin(), packets.end(), [&](const packet& each) {
    return has_one_forward_picture(codec, each.data());
  });
}

}  // namespace lade::media
