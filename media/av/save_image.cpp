#include <lade/error.hpp>
#include <lade/media/av/save_image.hpp>

#include "byte_output.hpp"
#include "open_encoder.hpp"
#include "picture_source.hpp"
#include "video_format.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

extern "C" {
#include <libavutil/pixdesc.h>
}

namespace lade::media {

static const AVCodec& image_encoder_of(const std::string& path) {
  constexpr std::array<std::pair<std::string_view, const char*>, 7> known{{{".png", "png"},
                                                                           {".jpg", "mjpeg"},
                                                                           {".jpeg", "mjpeg"},
                                                                           {".webp", "libwebp"},
                                                                           {".bmp", "bmp"},
                                                                           {".tif", "tiff"},
                                                                           {".tiff", "tiff"}}};
  std::string lower = path;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const auto& [extension, encoder] : known)
    if (lower.ends_with(extension)) return find_av_encoder(encoder, AVMEDIA_TYPE_VIDEO);
  throw error(errc::unsupported, "write " + path,
              "images are png, jpg, jpeg, webp, bmp, tif or tiff");
}

static AVPixelFormat image_format(const AVCodec& encoder, AVPixelFormat source,
                                  const save_image_options& options, std::string_view doing) {
  const bool chosen = !options.pixel_format.empty() || encoder.id == AV_CODEC_ID_MJPEG;
  return chosen ? choose_pixel_format(encoder, options.pixel_format, doing)
                : nearest_pixel_format(encoder, source, doing);
}

// The encoder of one image of a size.
static open_encoder encoder_of_image(const std::string& path, int width, int height,
                                     AVPixelFormat source, const save_image_options& options) {
  auto doing = "write " + path;
  const auto& encoder = image_encoder_of(path);
  av_codec_context context(check_av(avcodec_alloc_context3(&encoder)));
  context->width = width;
  context->height = height;
  context->pix_fmt = image_format(encoder, source, options, doing);
  context->time_base = {1, 1};
  set_colours(*context, {}, doing);
  return {std::move(context), {0, options.quality, options.options}, std::move(doing)};
}

static void write_image(const std::string& path, open_encoder& encoder, av_frame picture) {
  picture->pts = 0;
  picture->pict_type = AV_PICTURE_TYPE_NONE;
  picture->quality = encoder.context().global_quality;
  encoder.send(*picture);
  encoder.finish();
  const auto image = encoder.receive();
  if (!image) throw error(errc::failed, encoder.doing(), "the encoder returned nothing");
  file_output file(path);
  file.write(image->data(), 0);
  file.finish();
}

template <class Picture, class Make>
static void save_picture(const std::string& path, std::int64_t width, std::int64_t height,
                         AVPixelFormat source, const save_image_options& options,
                         const Picture& picture, Make make) {
  constexpr std::int64_t most = 32768;
  if (width < 1 || height < 1 || width > most || height > most)
    throw error(errc::invalid_argument, "write " + path, "images are 1 to 32768 pixels a side");
  auto encoder =
      encoder_of_image(path, static_cast<int>(width), static_cast<int>(height), source, options);
  const auto& context = encoder.context();
  picture_source from(context.width, context.height, format_of_encoder(context));
  write_image(path, encoder, (from.*make)(picture, encoder.doing()));
}

void save_image(const std::string& path, const frame& picture, const save_image_options& options) {
  if (picture.kind() != stream_kind::video)
    throw error(errc::invalid_argument, "write " + path, "the frame is audio");
  const auto format = format_of_picture(picture.get()).format;
  save_picture(path, picture.width(), picture.height(), format, options, picture,
               &picture_source::from_frame);
}

void save_image(const std::string& path, const tensor& picture, const save_image_options& options) {
  const bool rows = picture.rank() == 3;
  save_picture(path, rows ? picture.shape()[1] : 1, rows ? picture.shape()[0] : 1, AV_PIX_FMT_RGB24,
               options, picture, &picture_source::from_tensor);
}

}  // namespace lade::media
