#include "picture_colours.hpp"

#include <lade/error.hpp>
#include <lade/media/av/convert.hpp>

#include <optional>
#include <string_view>
#include <utility>

extern "C" {
#include <libavcodec/packet.h>
}

namespace lade::cuda {

[[noreturn]] static void refuse_colours(const media::stream_info& stream, std::string_view reason) {
  throw error(errc::unsupported, "convert frames of " + stream.name() + " on the GPU", reason);
}

// An edit list may mark the key frame as not shown; it is decoded nevertheless.
static media::packet shown_packet(const media::packet& key) {
  media::av_packet copy(media::check_av(av_packet_clone(&key.get())));
  copy->flags &= ~AV_PKT_FLAG_DISCARD;
  return media::packet(std::move(copy));
}

static media::frame decode_key_frame(const media::stream_info& stream, const media::packet& key,
                                     const media::decode_options& options) {
  media::decoder decoder(stream, options);
  decoder.send(shown_packet(key));
  auto decoded = decoder.receive();
  if (!decoded) {
    decoder.finish();
    decoded = decoder.receive();
  }
  if (!decoded) refuse_colours(stream, "its first key frame is not decoded alone");
  return *std::move(decoded);
}

static yuv_matrix matrix_of(media::colour_matrix matrix) {
  switch (matrix) {
    case media::colour_matrix::bt601: return yuv_matrix::bt601;
    case media::colour_matrix::bt709: return yuv_matrix::bt709;
    case media::colour_matrix::bt2020: break;
  }
  return yuv_matrix::bt2020;
}

static std::optional<yuv_siting> siting_of(const media::chroma_siting& siting) {
  using enum media::chroma_site;
  if (siting.x == first && siting.y == middle) return yuv_siting::left;
  if (siting.x == middle && siting.y == middle) return yuv_siting::centre;
  if (siting.x == first && siting.y == first) return yuv_siting::top_left;
  return std::nullopt;
}

picture_colours colours_of(const media::stream_info& stream, const media::packet& key,
                           const media::decode_options& options) {
  const auto decoded = decode_key_frame(stream, key, options);
  const auto picture = media::picture_of(decoded);
  if (picture.layout != media::plane_layout::y_cb_cr)
    refuse_colours(stream, "its planes are not luma and chroma");
  const auto siting = siting_of(picture.siting);
  if (!siting) refuse_colours(stream, "the kernels do not support its chroma sample positions");
  return {.siting = *siting, .matrix = matrix_of(picture.matrix), .full_range = picture.full_range};
}

}  // namespace lade::cuda
