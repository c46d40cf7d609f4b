#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/media/av/save_image.hpp>

#include "byte_output.hpp"
#include "open_encoder.hpp"
#include "picture_source.hpp"
#include "shown_picture.hpp"
#include "video_format.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

namespace lade::media {

// `format`: a file extension without its dot, in any case.
static const AVCodec& image_encoder_of(std::string_view format, std::string_view doing) {
  constexpr std::array<std::pair<std::string_view, const char*>, 7> known{{{"png", "png"},
                                                                           {"jpg", "mjpeg"},
                                                                           {"jpeg", "mjpeg"},
                                                                           {"webp", "libwebp"},
                                                                           {"bmp", "bmp"},
                                                                           {"tif", "tiff"},
                                                                           {"tiff", "tiff"}}};
  std::string lower(format);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const auto& [extension, encoder] : known)
    if (lower == extension) return find_av_encoder(encoder, AVMEDIA_TYPE_VIDEO);
  throw error(errc::unsupported, doing, "images are png, jpg, jpeg, webp, bmp, tif or tiff");
}

static std::string_view extension_of(std::string_view path) noexcept {
  const auto dot = path.rfind('.');
  return dot == path.npos ? std::string_view() : path.substr(dot + 1);
}

static AVPixelFormat image_format(const AVCodec& encoder, AVPixelFormat source,
                                  const save_image_options& options, std::string_view doing) {
  const bool chosen = !options.pixel_format.empty() || encoder.id == AV_CODEC_ID_MJPEG;
  return chosen ? choose_pixel_format(encoder, options.pixel_format, doing)
                : nearest_pixel_format(encoder, source, doing);
}

// Opens an encoder for one image.
static open_encoder encoder_of_image(const AVCodec& encoder, int width, int height,
                                     AVPixelFormat source, const save_image_options& options,
                                     std::string doing) {
  av_codec_context context(check_av(avcodec_alloc_context3(&encoder)));
  context->width = width;
  context->height = height;
  context->pix_fmt = image_format(encoder, source, options, doing);
  context->time_base = {1, 1};
  set_colours(*context, {}, doing);
  return {std::move(context), {0, options.quality, options.options}, std::move(doing)};
}

static packet encode_picture(open_encoder& encoder, av_frame picture) {
  picture->pts = 0;
  encoder.send(*picture);
  encoder.finish();
  auto image = encoder.receive();
  if (!image) throw error(errc::failed, encoder.doing(), "the encoder returned nothing");
  return std::move(*image);
}

template <class Make>
static packet encode_sized(std::string_view format, std::int64_t width, std::int64_t height,
                           AVPixelFormat source, const save_image_options& options,
                           const std::string& doing, Make make) {
  constexpr std::int64_t most = 32768;
  if (width < 1 || height < 1 || width > most || height > most)
    throw error(errc::invalid_argument, doing, "images are 1 to 32768 pixels a side");
  const auto& codec = image_encoder_of(format, doing);
  auto encoder = encoder_of_image(codec, static_cast<int>(width), static_cast<int>(height), source,
                                  options, doing);
  const auto& context = encoder.context();
  picture_source from(context.width, context.height, format_of_encoder(context));
  return encode_picture(encoder, make(from));
}

static std::size_t picture_bytes(const AVFrame& frame) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  const int bytes = av_image_get_buffer_size(format, frame.width, frame.height, 64);
  return static_cast<std::size_t>(check_av(bytes, "size a picture"));
}

// The frame as displayed, in the colours of the encoder.
static frame shown_frame(const frame& picture, const picture_format& to, std::string_view doing) {
  auto colours = to;
  colours.format = format_to_turn(to.format);
  picture_source stored(picture.width(), picture.height(), colours);
  const auto converted = stored.from_frame(picture, doing);
  return frame(shown_picture(*converted, picture.stream().orientation()), picture.stream());
}

static packet encode_to(std::string_view format, const frame& picture,
                        const save_image_options& options, const std::string& doing) {
  if (picture.kind() != stream_kind::video)
    throw error(errc::invalid_argument, doing, "the frame is audio");
  const auto source = format_of_picture(picture.get()).format;
  const auto orientation = options.orient ? picture.stream().orientation() : display_orientation{};
  const auto [width, height] = shown_size(picture.width(), picture.height(), orientation);
  return encode_sized(format, width, height, source, options, doing, [&](picture_source& from) {
    if (orientation == display_orientation{}) return from.from_frame(picture, doing);
    const auto shown = shown_frame(picture, from.format(), doing);
    const memory_charge copy(picture_bytes(shown.get()));
    return from.from_frame(shown, doing);
  });
}

static packet encode_to(std::string_view format, const tensor& picture,
                        const save_image_options& options, const std::string& doing) {
  if (options.tensor_layout > image_layout::chw)
    throw error(errc::invalid_argument, doing, "tensor_layout is no value of image_layout");
  const auto axes = axes_of(options.tensor_layout);
  const bool rows = picture.rank() == 3;  // picture_source refuses others
  return encode_sized(
      format, rows ? picture.shape()[axes.columns] : 1, rows ? picture.shape()[axes.rows] : 1,
      format_of_tensor(picture, options.tensor_layout), options, doing, [&](picture_source& from) {
        return from.from_tensor(picture, options.tensor_layout, doing);
      });
}

template <class Picture>
static void save_picture(const std::string& path, const Picture& picture,
                         const save_image_options& options) {
  const auto image = encode_to(extension_of(path), picture, options, "write " + path);
  file_output file(path);
  file.write(image.data(), 0);
  file.finish();
}

template <class Picture>
static buffer picture_in_memory(const Picture& picture, std::string_view format,
                                const save_image_options& options) {
  const auto doing = fmt::format("encode an image ({})", format);
  const auto image = encode_to(format, picture, options, doing);
  auto bytes = allocate_now(image.data().size());
  std::copy(image.data().begin(), image.data().end(), bytes.data());
  return bytes;
}

void save_image(const std::string& path, const frame& picture, const save_image_options& options) {
  save_picture(path, picture, options);
}

void save_image(const std::string& path, const tensor& picture, const save_image_options& options) {
  save_picture(path, picture, options);
}

buffer encode_image(const frame& picture, std::string_view format,
                    const save_image_options& options) {
  return picture_in_memory(picture, format, options);
}

buffer encode_image(const tensor& picture, std::string_view format,
                    const save_image_options& options) {
  return picture_in_memory(picture, format, options);
}

}  // namespace lade::media
