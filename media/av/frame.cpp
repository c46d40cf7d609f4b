#include <lade/error.hpp>
#include <lade/media/av/frame.hpp>

#include "compat.hpp"
#include "stream_fields.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <libavutil/samplefmt.h>
}

namespace lade::media {

frame::frame(av_frame from, stream_info stream) : stream_(std::move(stream)) {
  drop_unknown_colours(*from);
  frame_ = std::shared_ptr<const AVFrame>(from.release(), av_deleter());
}

stream_kind frame::kind() const noexcept {
  return frame_->width > 0 ? stream_kind::video : stream_kind::audio;
}

std::optional<std::int64_t> frame::pts() const noexcept {
  const auto pts = frame_->pts != AV_NOPTS_VALUE ? frame_->pts : frame_->best_effort_timestamp;
  if (pts == AV_NOPTS_VALUE) return std::nullopt;
  return pts;
}

// Computes with times of a file, which may be so large that the result overflows. The error names
// the stream.
template <class Compute>
static auto compute_times(const frame& source, Compute compute) {
  try {
    return compute();
  } catch (const error& failed) {
    throw error(failed.code(), "compute times of a frame of " + source.stream().name(),
                failed.what());
  }
}

static rational seconds_of(std::int64_t units, const frame& source) {
  return compute_times(source, [&] { return rational(units) * source.time_base(); });
}

std::optional<rational> frame::time() const {
  const auto stamp = pts();
  if (!stamp) return std::nullopt;
  return seconds_of(*stamp, *this);
}

rational frame::duration() const {
  return seconds_of(std::max<std::int64_t>(0, duration_of(*frame_)), *this);
}

int frame::width() const noexcept { return frame_->width; }
int frame::height() const noexcept { return frame_->height; }
bool frame::is_key() const noexcept { return is_key_frame(*frame_); }
bool frame::is_interlaced() const noexcept { return is_interlaced_frame(*frame_); }

// FFmpeg returns null for unknown enumerators.
static std::string_view known(const char* name) noexcept { return name ? name : "unknown"; }

std::string_view frame::pixel_format() const noexcept {
  return known(av_get_pix_fmt_name(static_cast<AVPixelFormat>(frame_->format)));
}

char frame::picture_type() const noexcept { return av_get_picture_type_char(frame_->pict_type); }

frame_colour frame::colour() const noexcept {
  return {.matrix = known(av_color_space_name(frame_->colorspace)),
          .primaries = known(av_color_primaries_name(frame_->color_primaries)),
          .transfer = known(av_color_transfer_name(frame_->color_trc)),
          .range = known(av_color_range_name(frame_->color_range))};
}

rational frame::sample_aspect() const {
  const auto aspect = frame_->sample_aspect_ratio;
  if (aspect.num > 0 && aspect.den > 0) return rational_of(aspect);
  return stream_.sample_aspect();
}

int frame::sample_rate() const noexcept { return frame_->sample_rate; }
int frame::channels() const noexcept { return frame_->ch_layout.nb_channels; }
int frame::samples() const noexcept { return frame_->nb_samples; }

std::string_view frame::sample_format() const noexcept {
  return known(av_get_sample_fmt_name(static_cast<AVSampleFormat>(frame_->format)));
}

static AVSampleFormat samples_of(const AVFrame& frame) noexcept {
  return static_cast<AVSampleFormat>(frame.format);
}

int frame::planes() const noexcept {
  if (kind() == stream_kind::video)
    return std::max(0, av_pix_fmt_count_planes(static_cast<AVPixelFormat>(frame_->format)));
  return av_sample_fmt_is_planar(samples_of(*frame_)) != 0 ? channels() : 1;
}

[[noreturn]] static void refuse_plane(const frame& source, std::string_view reason) {
  throw error(errc::unsupported, "view a plane of a frame of " + std::string(source.pixel_format()),
              reason);
}

// The elements of one plane.
struct plane_shape {
  element_type type = element_type::u8;
  int components = 0;  // interleaved
};

static plane_shape shape_of_plane(const frame& source, const AVPixFmtDescriptor& format,
                                  int plane) {
  plane_shape shape;
  int step = 0;
  int depth = 0;
  for (int c = 0; c < format.nb_components; ++c) {
    const auto& component = format.comp[c];
    if (component.plane != plane) continue;
    step = std::max(step, component.step);
    depth = std::max(depth, component.depth);
  }
  const bool bits = (format.flags & (AV_PIX_FMT_FLAG_BITSTREAM | AV_PIX_FMT_FLAG_HWACCEL)) != 0;
  if (bits || step == 0) refuse_plane(source, "components are not at whole bytes");
  const int bytes = depth > 16 ? 4 : depth > 8 ? 2 : 1;
  if (step % bytes != 0) refuse_plane(source, "components are not at whole bytes");
  const bool floats = (format.flags & AV_PIX_FMT_FLAG_FLOAT) != 0;
  shape.type = bytes == 1   ? element_type::u8
               : bytes == 4 ? (floats ? element_type::f32 : element_type::u32)
               : floats     ? element_type::f16
                            : element_type::u16;
  shape.components = step / bytes;
  return shape;
}

static int shifted_up(int size, int shift) { return -((-size) >> shift); }

// The bytes of rows whose stride may be negative.
static buffer memory_of_rows(const std::shared_ptr<const AVFrame>& owner, std::byte* first,
                             std::ptrdiff_t stride, std::ptrdiff_t rows, std::size_t row_bytes) {
  auto* lowest = stride < 0 ? first + stride * (rows - 1) : first;
  const auto span = static_cast<std::size_t>(std::abs(stride) * (rows - 1)) + row_bytes;
  return {owner, {lowest, span}};
}

static tensor video_plane(const frame& source, const std::shared_ptr<const AVFrame>& owner, int i) {
  const auto* format = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(owner->format));
  const auto shape = shape_of_plane(source, *format, i);
  const bool chroma = (i == 1 || i == 2) && (format->flags & AV_PIX_FMT_FLAG_RGB) == 0;
  const std::int64_t width = shifted_up(owner->width, chroma ? format->log2_chroma_w : 0);
  const std::int64_t height = shifted_up(owner->height, chroma ? format->log2_chroma_h : 0);
  const auto element = static_cast<std::ptrdiff_t>(element_bytes(shape.type));
  const std::ptrdiff_t stride = owner->linesize[i];
  if (stride % element != 0) refuse_plane(source, "rows are not aligned to their elements");
  auto* first = reinterpret_cast<std::byte*>(owner->data[i]);
  const auto row_bytes = static_cast<std::size_t>(width * shape.components * element);
  const auto memory = memory_of_rows(owner, first, stride, height, row_bytes);
  const std::int64_t row = stride / element;
  if (shape.components == 1) return {{shape.type, {height, width}}, {row, 1}, memory, first};
  return {
      {shape.type, {height, width, shape.components}}, {row, shape.components, 1}, memory, first};
}

static element_type element_of_samples(AVSampleFormat format) noexcept {
  switch (av_get_packed_sample_fmt(format)) {
    case AV_SAMPLE_FMT_U8: return element_type::u8;
    case AV_SAMPLE_FMT_S16: return element_type::i16;
    case AV_SAMPLE_FMT_S32: return element_type::i32;
    case AV_SAMPLE_FMT_S64: return element_type::i64;
    case AV_SAMPLE_FMT_DBL: return element_type::f64;
    default: return element_type::f32;
  }
}

tensor frame::plane(int i) const {
  if (i < 0 || i >= planes())
    throw error(errc::invalid_argument, fmt::format("view plane {} of a frame", i),
                fmt::format("it has {}", planes()));
  if (kind() == stream_kind::video) return video_plane(*this, frame_, i);
  const auto type = element_of_samples(samples_of(*frame_));
  const bool planar = av_sample_fmt_is_planar(samples_of(*frame_)) != 0;
  const dimensions shape = planar ? dimensions{samples()} : dimensions{samples(), channels()};
  const tensor_spec spec{type, shape};
  auto* first = reinterpret_cast<std::byte*>(frame_->extended_data[i]);
  return {spec, buffer(frame_, {first, spec.bytes()})};
}

// A new AVFrame that refers to the same memory.
static av_frame share_frame(const AVFrame& from) {
  return av_frame(check_av(av_frame_clone(&from)));
}

frame frame::slice(int first, int count) const {
  if (kind() != stream_kind::audio || first < 0 || count < 0 || first > samples() - count)
    throw error(
        errc::invalid_argument, fmt::format("slice {} samples at {} of a frame", count, first),
        kind() == stream_kind::audio ? fmt::format("it has {}", samples()) : "it is a picture");
  auto part = share_frame(*frame_);
  const int sample_bytes = av_get_bytes_per_sample(samples_of(*frame_));
  const bool planar = planes() == channels();
  const int step = planar ? sample_bytes : sample_bytes * channels();
  for (int i = 0; i < planes(); ++i) part->extended_data[i] += std::ptrdiff_t{first} * step;
  if (part->extended_data != part->data)
    std::copy_n(part->extended_data, std::min(planes(), AV_NUM_DATA_POINTERS), part->data);
  part->nb_samples = count;
  compute_times(*this, [&] {
    const rational unit = rational(1, std::max(1, sample_rate())) / time_base();
    if (const auto stamp = pts())
      part->pts = part->best_effort_timestamp = (rational(*stamp) + rational(first) * unit).round();
    set_duration(*part, (rational(count) * unit).round());
  });
  return {std::move(part), stream_};
}

frame frame::clone() const {
  av_frame copy(check_av(av_frame_alloc()));
  copy->format = frame_->format;
  copy->width = frame_->width;
  copy->height = frame_->height;
  copy->nb_samples = frame_->nb_samples;
  check_av(av_channel_layout_copy(&copy->ch_layout, &frame_->ch_layout), "copy a channel layout");
  check_av(av_frame_get_buffer(copy.get(), 0), "allocate a frame");
  check_av(av_frame_copy(copy.get(), frame_.get()), "copy a frame");
  check_av(av_frame_copy_props(copy.get(), frame_.get()), "copy the properties of a frame");
  return {std::move(copy), stream_};
}

}  // namespace lade::media
