#include "stored_stream.hpp"

#include "codec_pool.hpp"
#include "stream_fields.hpp"

#include <array>
#include <cstring>
#include <string>
#include <utility>

extern "C" {
#include <libavcodec/codec_desc.h>
#include <libavutil/channel_layout.h>
#include <libavutil/mem.h>
#include <libavutil/pixdesc.h>
#include <libavutil/samplefmt.h>
}

namespace lade::media {

static std::string_view text_or_empty(const char* text) noexcept { return text ? text : ""; }

// FFmpeg's name of a pixel or sample format.
static std::string_view format_name(const AVCodecParameters& parameters) noexcept {
  if (parameters.codec_type == AVMEDIA_TYPE_VIDEO)
    return text_or_empty(av_get_pix_fmt_name(static_cast<AVPixelFormat>(parameters.format)));
  if (parameters.codec_type == AVMEDIA_TYPE_AUDIO)
    return text_or_empty(av_get_sample_fmt_name(static_cast<AVSampleFormat>(parameters.format)));
  return {};
}

static std::string layout_name(const AVChannelLayout& layout) {
  if (layout.nb_channels == 0) return {};
  std::array<char, 256> text{};
  check_av(av_channel_layout_describe(&layout, text.data(), text.size()),
           "describe a channel layout");
  return text.data();
}

// The numeric parameters, in the order of the file.
template <class Parameters, class Use>
static void for_each_number(Parameters& parameters, const Use& use) {
  use(parameters.bits_per_coded_sample, 0, 1 << 16);
  use(parameters.bits_per_raw_sample, 0, 1 << 16);
  use(parameters.profile, INT32_MIN, INT32_MAX);
  use(parameters.level, INT32_MIN, INT32_MAX);
  use(parameters.width, 0, 1 << 16);
  use(parameters.height, 0, 1 << 16);
  use(parameters.sample_aspect_ratio.num, 0, INT32_MAX);
  use(parameters.sample_aspect_ratio.den, 0, INT32_MAX);
  use(parameters.field_order, 0, AV_FIELD_BT);
  use(parameters.color_range, 0, AVCOL_RANGE_NB - 1);
  use(parameters.color_primaries, 0, AVCOL_PRI_NB - 1);
  use(parameters.color_trc, 0, AVCOL_TRC_NB - 1);
  use(parameters.color_space, 0, AVCOL_SPC_NB - 1);
  use(parameters.chroma_location, 0, AVCHROMA_LOC_NB - 1);
  use(parameters.video_delay, 0, most_reordered_pictures);
  use(parameters.sample_rate, 0, 1 << 24);
  use(parameters.block_align, 0, INT32_MAX);
  use(parameters.frame_size, 0, 1 << 24);
  use(parameters.initial_padding, 0, 1 << 24);
  use(parameters.trailing_padding, 0, 1 << 24);
  use(parameters.seek_preroll, 0, 1 << 24);
}

static void store_parameters(stored_writer& to, const AVCodecParameters& parameters) {
  to.number(static_cast<std::int8_t>(parameters.codec_type));
  to.text(avcodec_get_name(parameters.codec_id));
  to.number(parameters.codec_tag);
  to.text(format_name(parameters));
  to.text(layout_name(parameters.ch_layout));
  to.number(parameters.bit_rate);
  for_each_number(parameters,
                  [&](auto value, int, int) { to.number(static_cast<std::int32_t>(value)); });
  to.bytes(std::as_bytes(
      std::span(parameters.extradata, static_cast<std::size_t>(parameters.extradata_size))));
}

static AVCodecID codec_of_name(const std::string& name, const stored_reader& from) {
  const auto* found = avcodec_descriptor_get_by_name(name.c_str());
  if (found != nullptr && found->id == AV_CODEC_ID_WRAPPED_AVFRAME)
    throw error(errc::unsupported, from.doing(), "packets of wrapped_avframe are pointers");
  if (found != nullptr) return found->id;
  if (name == avcodec_get_name(AV_CODEC_ID_NONE)) return AV_CODEC_ID_NONE;
  throw error(errc::unsupported, from.doing(), "this FFmpeg has no codec " + name);
}

static int format_of_name(AVMediaType type, const std::string& name, const stored_reader& from) {
  if (name.empty()) return -1;
  const int format = type == AVMEDIA_TYPE_VIDEO ? int(av_get_pix_fmt(name.c_str()))
                                                : int(av_get_sample_fmt(name.c_str()));
  if (format >= 0) return format;
  throw error(errc::unsupported, from.doing(), "this FFmpeg has no format " + name);
}

static void load_extradata(stored_reader& from, AVCodecParameters& to) {
  const auto bytes = from.bytes();
  if (bytes.empty()) return;
  if (bytes.size() > (std::size_t{1} << 28)) from.refuse("the extradata has more than 256 MiB");
  to.extradata =
      static_cast<std::uint8_t*>(check_av(av_mallocz(bytes.size() + AV_INPUT_BUFFER_PADDING_SIZE)));
  std::memcpy(to.extradata, bytes.data(), bytes.size());
  to.extradata_size = static_cast<int>(bytes.size());
}

static av_codec_parameters load_parameters(stored_reader& from) {
  av_codec_parameters made(check_av(avcodec_parameters_alloc()));
  made->codec_type =
      static_cast<AVMediaType>(from.number<std::int8_t>(AVMEDIA_TYPE_UNKNOWN, AVMEDIA_TYPE_NB - 1));
  made->codec_id = codec_of_name(from.text(), from);
  const auto type = avcodec_get_type(made->codec_id);
  if (made->codec_id != AV_CODEC_ID_NONE && type != made->codec_type)
    from.refuse("the codec is of another kind than the stream");
  made->codec_tag = from.number<std::uint32_t>();
  made->format = format_of_name(made->codec_type, from.text(), from);
  if (const auto layout = from.text(); !layout.empty())
    if (av_channel_layout_from_string(&made->ch_layout, layout.c_str()) < 0)
      from.refuse("a channel layout is unknown");
  constexpr int most_channels = 512;  // libavcodec's limit
  if (made->ch_layout.nb_channels > most_channels) from.refuse("it has more than 512 channels");
  made->bit_rate = from.number<std::int64_t>(0, INT64_MAX);
  for_each_number(*made, [&](auto& value, int low, int high) {
    value =
        static_cast<std::remove_reference_t<decltype(value)>>(from.number<std::int32_t>(low, high));
  });
  load_extradata(from, *made);
  return made;
}

void store_stream(stored_writer& to, const stream_info& stream) {
  const auto& fields = stream.stored();
  to.text(fields.file);
  to.number(static_cast<std::int32_t>(fields.index));
  store_parameters(to, *fields.parameters);
  to.fraction(fields.time_base);
  to.fraction(fields.start_time);
  to.fraction(fields.duration);
  to.fraction(fields.frame_rate);
  to.fraction(fields.sample_aspect);
  to.number(fields.stated_frames.value_or(-1));
  to.number(static_cast<std::int32_t>(fields.orientation.degrees));
  to.number(static_cast<std::uint8_t>(fields.orientation.mirrored));
  to.number(static_cast<std::uint64_t>(fields.metadata.size()));
  for (const auto& [key, value] : fields.metadata) {
    to.text(key);
    to.text(value);
  }
}

// Reads a time base, whose terms must fit FFmpeg's 32 bits.
static rational load_time_base(stored_reader& from) {
  const auto unit = from.fraction();
  if (unit <= 0 || unit.numerator() > INT32_MAX || unit.denominator() > INT32_MAX)
    from.refuse("the time base is not above 0");
  return unit;
}

stream_info load_stream(stored_reader& from) {
  auto fields = std::make_shared<stream_info::fields>();
  fields->file = from.text();
  fields->index = from.number<std::int32_t>(0, INT32_MAX);
  fields->parameters = load_parameters(from);
  fields->time_base = load_time_base(from);
  fields->start_time = from.optional_fraction();
  fields->duration = from.optional_fraction();
  fields->frame_rate = from.optional_fraction();
  fields->sample_aspect = from.fraction();
  if (fields->sample_aspect <= 0) from.refuse("the sample aspect is not above 0");
  if (const auto frames = from.number<std::int64_t>(-1, INT64_MAX); frames >= 0)
    fields->stated_frames = frames;
  fields->orientation.degrees = from.number<std::int32_t>(0, 270);
  if (fields->orientation.degrees % 90 != 0) from.refuse("an orientation is no multiple of 90");
  fields->orientation.mirrored = from.number<std::uint8_t>(0, 1) != 0;
  constexpr std::size_t pair_bytes = 16;
  const auto pairs = from.count(pair_bytes);
  for (std::size_t i = 0; i < pairs; ++i) {
    auto key = from.text();
    auto value = from.text();
    fields->metadata.emplace_back(std::move(key), std::move(value));
  }
  return stream_info(std::move(fields));
}

}  // namespace lade::media
