#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/media/av.hpp>
#include <lade/media/av/convert.hpp>
#include <lade/media/slot.hpp>

#include "frame_options.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

extern "C" {
#include <libavutil/frame.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

namespace lade::media {

[[noreturn]] static void refuse_conversion(const frame& source, std::string_view feature) {
  throw error(
      errc::unsupported,
      fmt::format("convert a frame of {} from {}", source.stream().name(), source.pixel_format()),
      feature);
}

// The layout of a frame's components in its planes; empty if pictures have no such layout.
static std::optional<plane_layout> layout_of(const AVPixFmtDescriptor& format) noexcept {
  const auto& comp = format.comp;
  const int count = format.nb_components;
  const int bytes = comp[0].depth > 8 ? 2 : 1;
  const auto lies = [&](int c, int plane, int offset, int step) {
    return comp[c].plane == plane && comp[c].offset == offset * bytes &&
           comp[c].step == step * bytes;
  };
  if (count <= 2 && lies(0, 0, 0, 1)) return plane_layout::grey;  // alpha has its own plane
  const bool rgb = (format.flags & AV_PIX_FMT_FLAG_RGB) != 0;
  if (rgb && lies(0, 2, 0, 1) && lies(1, 0, 0, 1) && lies(2, 1, 0, 1))
    return count == 4 ? plane_layout::g_b_r_a : plane_layout::g_b_r;
  if (rgb) {
    const int step = count;
    if (lies(0, 0, 0, step) && lies(1, 0, 1, step) && lies(2, 0, 2, step))
      return count == 4 ? plane_layout::rgba : plane_layout::rgb;
    if (lies(0, 0, 2, step) && lies(1, 0, 1, step) && lies(2, 0, 0, step))
      return count == 4 ? plane_layout::bgra : plane_layout::bgr;
    return std::nullopt;
  }
  if (!lies(0, 0, 0, 1)) return std::nullopt;
  if (lies(1, 1, 0, 1) && lies(2, 2, 0, 1))
    return count == 4 ? plane_layout::y_cb_cr_a : plane_layout::y_cb_cr;
  if (lies(1, 1, 0, 2) && lies(2, 1, 1, 2)) return plane_layout::y_cbcr;
  if (lies(1, 1, 1, 2) && lies(2, 1, 0, 2)) return plane_layout::y_crcb;
  return std::nullopt;
}

static bool is_jpeg_format(int format) noexcept {
  switch (format) {
    case AV_PIX_FMT_YUVJ420P:
    case AV_PIX_FMT_YUVJ422P:
    case AV_PIX_FMT_YUVJ444P:
    case AV_PIX_FMT_YUVJ440P:
    case AV_PIX_FMT_YUVJ411P: return true;
    default: return false;
  }
}

static colour_matrix matrix_of(const frame& source) {
  switch (source.get().colorspace) {
    case AVCOL_SPC_BT709: return colour_matrix::bt709;
    case AVCOL_SPC_BT470BG:
    case AVCOL_SPC_SMPTE170M: return colour_matrix::bt601;
    case AVCOL_SPC_BT2020_NCL: return colour_matrix::bt2020;
    case AVCOL_SPC_UNSPECIFIED:
    case AVCOL_SPC_RESERVED: {
      const bool high_definition = source.width() >= 1280 || source.height() > 576;
      return high_definition && !is_jpeg_format(source.get().format) ? colour_matrix::bt709
                                                                     : colour_matrix::bt601;
    }
    default:
      refuse_conversion(source, "the colour matrix is " + std::string(source.colour().matrix));
  }
}

static chroma_siting siting_of(const frame& source) {
  constexpr auto first = chroma_site::first;
  constexpr auto middle = chroma_site::middle;
  constexpr auto last = chroma_site::last;
  switch (source.get().chroma_location) {
    case AVCHROMA_LOC_LEFT: return left_siting;
    case AVCHROMA_LOC_CENTER: return centre_siting;
    case AVCHROMA_LOC_TOPLEFT: return top_left_siting;
    case AVCHROMA_LOC_TOP: return {middle, first};
    case AVCHROMA_LOC_BOTTOMLEFT: return {first, last};
    case AVCHROMA_LOC_BOTTOM: return {middle, last};
    default: return is_jpeg_format(source.get().format) ? centre_siting : left_siting;
  }
}

static void check_format(const frame& source, const AVPixFmtDescriptor* format) {
  if (source.kind() != stream_kind::video)
    throw error(errc::invalid_argument, "convert a frame of " + source.stream().name(),
                "it is audio, not a picture");
  constexpr std::uint64_t foreign = AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_BITSTREAM |
                                    AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_FLOAT |
                                    AV_PIX_FMT_FLAG_BAYER;
  if (format == nullptr || (format->flags & foreign) != 0)
    refuse_conversion(source, "the format is not handled");
  constexpr bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
  const bool big_samples = (format->flags & AV_PIX_FMT_FLAG_BE) != 0;
  if (format->comp[0].depth > 8 && big_samples == little)
    refuse_conversion(source, "samples are not in the byte order of this machine");
  for (int c = 1; c < format->nb_components; ++c)
    if (format->comp[c].depth != format->comp[0].depth)
      refuse_conversion(source, "components have different depths");
}

picture picture_of(const frame& from) {
  const auto& av = from.get();
  const auto* format = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(av.format));
  check_format(from, format);
  const auto layout = layout_of(*format);
  if (!layout) refuse_conversion(from, "the layout of its planes is not supported");
  picture result{.width = av.width, .height = av.height, .layout = *layout};
  for (std::size_t i = 0; i < result.planes.size(); ++i)
    result.planes[i] = {.data = av.data[i], .stride = av.linesize[i]};
  result.bits = format->comp[0].depth;
  result.shift = format->comp[0].shift;
  result.chroma_shift_x = format->log2_chroma_w;
  result.chroma_shift_y = format->log2_chroma_h;
  const bool yuv = (format->flags & AV_PIX_FMT_FLAG_RGB) == 0;
  const bool grey = format->nb_components < 3;
  const bool full_by_default = !yuv || grey || is_jpeg_format(av.format);
  result.full_range = av.color_range == AVCOL_RANGE_UNSPECIFIED
                          ? full_by_default
                          : !yuv || av.color_range == AVCOL_RANGE_JPEG;
  if (yuv && !grey) result.matrix = matrix_of(from);
  result.siting = siting_of(from);
  constexpr double widest = 256;
  result.pixel_aspect = std::clamp(from.sample_aspect().to_double(), 1 / widest, widest);
  return result;
}

// Exif's orientations: 6 is 90 degrees clockwise, 2 is mirrored left to right, 7 and 5 are mirrored
// and then turned by 90 and 270 degrees.
int exif_orientation_of(const stream_info& stream) noexcept {
  const auto [degrees, mirrored] = stream.orientation();
  switch (degrees) {
    case 90: return mirrored ? 7 : 6;
    case 180: return mirrored ? 4 : 3;
    case 270: return mirrored ? 5 : 8;
    default: return mirrored ? 2 : 1;
  }
}

void write_frame(const frame& from, const image_options& how, const tensor& out, random draw) {
  write_picture(picture_of(from), how, out, draw,
                how.orient ? exif_orientation_of(from.stream()) : 1);
}

tensor to_tensor(const frame& from, const image_options& how, random draw) {
  const int turn = how.orient ? exif_orientation_of(from.stream()) : 1;
  const auto sized =
      with_size(how, from.width(), from.height(), from.sample_aspect(), turn, from.stream().name());
  check_picture_options(sized, "convert a frame of " + from.stream().name());
  const auto spec = frame_spec(sized);
  const tensor out(spec, allocate_now(spec.bytes()));
  write_picture(picture_of(from), sized, out, draw, turn);
  return out;
}

tensor_spec planes_spec(const frame& of) {
  const auto* format = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(of.get().format));
  check_format(of, format);
  if (!layout_of(*format)) refuse_conversion(of, "the layout of its planes is not supported");
  const auto type = format->comp[0].depth > 8 ? element_type::u16 : element_type::u8;
  const std::int64_t width = of.width();
  const std::int64_t height = of.height();
  const int shift_x = format->log2_chroma_w;
  const int shift_y = format->log2_chroma_h;
  const int planes = of.planes();
  if (width % (1 << shift_x) != 0 || height % (1 << shift_y) != 0)
    refuse_conversion(of, "its chroma does not fill whole rows");
  if (planes == 1 && format->nb_components > 1)
    return {type, {height, width, format->nb_components}};
  if (planes == 1) return {type, {height, width}};
  if (planes == format->nb_components && shift_x == 0 && shift_y == 0)
    return {type, {planes, height, width}};
  const bool has_alpha = format->nb_components % 2 == 0;
  if (has_alpha || shift_x != 1 || shift_y > 1)
    refuse_conversion(of, "its planes do not fill whole rows");
  return {type, {shift_y == 1 ? height / 2 * 3 : height * 2, width}};
}

void write_planes(const frame& from, const tensor& out) {
  const auto spec = planes_spec(from);
  require_slot_of(spec, out, "copy the planes of a frame of " + from.stream().name());
  const auto& av = from.get();
  check_av(av_image_copy_to_buffer(reinterpret_cast<std::uint8_t*>(out.bytes()),
                                   static_cast<int>(spec.bytes()), av.data, av.linesize,
                                   static_cast<AVPixelFormat>(av.format), av.width, av.height, 1),
           "copy the planes of a frame of " + from.stream().name());
}

tensor planes_to_tensor(const frame& from) {
  const auto spec = planes_spec(from);
  const tensor out(spec, allocate_now(spec.bytes()));
  write_planes(from, out);
  return out;
}

}  // namespace lade::media
