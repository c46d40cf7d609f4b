#include <lade/media/av/stream_info.hpp>

#include "compat.hpp"
#include "stream_fields.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

extern "C" {
#include <libavutil/display.h>
}

namespace lade::media {

std::string_view name(stream_kind kind) noexcept {
  switch (kind) {
    case stream_kind::video: return "video";
    case stream_kind::audio: return "audio";
    case stream_kind::subtitle: return "subtitle";
    case stream_kind::data: return "data";
    case stream_kind::attachment: return "attachment";
  }
  return "unknown";
}

static stream_kind kind_of(const AVCodecParameters& parameters) noexcept {
  switch (parameters.codec_type) {
    case AVMEDIA_TYPE_VIDEO: return stream_kind::video;
    case AVMEDIA_TYPE_AUDIO: return stream_kind::audio;
    case AVMEDIA_TYPE_SUBTITLE: return stream_kind::subtitle;
    case AVMEDIA_TYPE_ATTACHMENT: return stream_kind::attachment;
    default: return stream_kind::data;
  }
}

rational rational_of(AVRational from) {
  return from.den == 0 ? rational() : rational(from.num, from.den);
}

AVRational av_rational_of(const rational& from) {
  return {static_cast<int>(from.numerator()), static_cast<int>(from.denominator())};
}

std::optional<rational> time_of(std::int64_t timestamp, const rational& time_base) {
  if (timestamp == AV_NOPTS_VALUE) return std::nullopt;
  return rational(timestamp) * time_base;
}

metadata metadata_of(const AVDictionary* from) {
  metadata result;
  const AVDictionaryEntry* entry = nullptr;
  while ((entry = av_dict_get(from, "", entry, AV_DICT_IGNORE_SUFFIX)) != nullptr)
    result.emplace_back(entry->key, entry->value);
  return result;
}

template <class E>
static void drop_unknown(E& value, E unspecified, E count) noexcept {
  int number = 0;
  static_assert(sizeof value == sizeof number);
  std::memcpy(&number, &value, sizeof number);
  if (number < 0 || number >= int(count)) value = unspecified;
}

template <class Fields>
static void drop_unknown_colours_but_matrix(Fields& target) noexcept {
  drop_unknown(target.color_range, AVCOL_RANGE_UNSPECIFIED, AVCOL_RANGE_NB);
  drop_unknown(target.color_primaries, AVCOL_PRI_UNSPECIFIED, AVCOL_PRI_NB);
  drop_unknown(target.color_trc, AVCOL_TRC_UNSPECIFIED, AVCOL_TRC_NB);
  drop_unknown(target.chroma_location, AVCHROMA_LOC_UNSPECIFIED, AVCHROMA_LOC_NB);
}

void drop_unknown_colours(AVFrame& frame) noexcept {
  drop_unknown_colours_but_matrix(frame);
  drop_unknown(frame.colorspace, AVCOL_SPC_UNSPECIFIED, AVCOL_SPC_NB);
}

void drop_unknown_colours(AVCodecParameters& parameters) noexcept {
  drop_unknown_colours_but_matrix(parameters);
  drop_unknown(parameters.color_space, AVCOL_SPC_UNSPECIFIED, AVCOL_SPC_NB);
}

av_codec_parameters copy_parameters(const AVCodecParameters& from) {
  av_codec_parameters copy(check_av(avcodec_parameters_alloc()));
  check_av(avcodec_parameters_copy(copy.get(), &from), "copy codec parameters");
  drop_unknown_colours(*copy);
  return copy;
}

void mirror_before_turning(std::int32_t* matrix) noexcept {
  for (auto* each = matrix; each < matrix + 2; ++each)
    *each = static_cast<std::int32_t>(-std::int64_t{*each});
}

// av_display_rotation_get returns the rotation anticlockwise. Other angles than multiples of 90
// degrees are ignored.
static display_orientation orientation_of_matrix(const std::int32_t* matrix) noexcept {
  if (matrix == nullptr) return {};
  std::int32_t plain[9];
  std::copy_n(matrix, 9, plain);
  const bool mirrored = double(plain[0]) * plain[4] < double(plain[1]) * plain[3];
  if (mirrored) mirror_before_turning(plain);
  const double turn = -av_display_rotation_get(plain);
  if (!std::isfinite(turn)) return {};
  const int quarters = static_cast<int>(std::lround(turn / 90));
  if (std::abs(turn - quarters * 90) > 1) return {.degrees = 0, .mirrored = mirrored};
  return {.degrees = (quarters % 4 + 4) % 4 * 90, .mirrored = mirrored};
}

static std::optional<rational> positive(AVRational value) {
  if (value.num <= 0 || value.den <= 0) return std::nullopt;
  return rational_of(value);
}

stream_info info_of(const AVStream& stream, std::string_view file, bool states_duration,
                    bool edited) {
  auto fields = std::make_shared<stream_info::fields>();
  fields->file = file;
  fields->index = stream.index;
  fields->parameters = copy_parameters(*stream.codecpar);
  fields->time_base = rational_of(stream.time_base);
  fields->start_time = time_of(stream.start_time, fields->time_base);
  if (states_duration && stream.duration > 0)
    fields->duration = time_of(stream.duration, fields->time_base);
  if (stream.nb_frames > 0) fields->stated_frames = stream.nb_frames;
  fields->frame_rate = positive(stream.avg_frame_rate);
  const auto aspect = positive(stream.sample_aspect_ratio);
  fields->sample_aspect =
      aspect ? *aspect : positive(stream.codecpar->sample_aspect_ratio).value_or(1);
  fields->orientation = orientation_of_matrix(display_matrix_of(stream));
  fields->metadata = metadata_of(stream.metadata);
  fields->edited = edited;
  return stream_info(std::move(fields));
}

bool has_headers_apart(const stream_info& stream) noexcept {
  return stream.fields_->separate_headers;
}

stream_info stream_info::of_frames(std::string name, stream_kind kind, rational time_base) {
  constexpr std::array types{AVMEDIA_TYPE_VIDEO, AVMEDIA_TYPE_AUDIO, AVMEDIA_TYPE_SUBTITLE,
                             AVMEDIA_TYPE_DATA, AVMEDIA_TYPE_ATTACHMENT};
  auto fields = std::make_shared<stream_info::fields>();
  fields->file = std::move(name);
  fields->parameters.reset(check_av(avcodec_parameters_alloc()));
  fields->parameters->codec_type = types[static_cast<std::size_t>(kind)];
  fields->time_base = time_base;
  return stream_info(std::move(fields));
}

std::string stream_info::name() const {
  if (fields_->parameters->codec_id == AV_CODEC_ID_NONE) return fields_->file;
  return fmt::format("{}, stream {} ({})", fields_->file, index(), codec());
}

int stream_info::index() const noexcept { return fields_->index; }
stream_kind stream_info::kind() const noexcept { return kind_of(*fields_->parameters); }
std::string_view stream_info::codec() const noexcept {
  const auto id = fields_->parameters->codec_id;
  return id == AV_CODEC_ID_NONE ? std::string_view() : avcodec_get_name(id);
}
rational stream_info::time_base() const noexcept { return fields_->time_base; }
std::optional<rational> stream_info::start_time() const noexcept { return fields_->start_time; }
std::optional<rational> stream_info::duration() const noexcept { return fields_->duration; }
std::optional<std::int64_t> stream_info::stated_frames() const noexcept {
  return fields_->stated_frames;
}
std::int64_t stream_info::bit_rate() const noexcept { return fields_->parameters->bit_rate; }
const metadata& stream_info::metadata() const noexcept { return fields_->metadata; }
int stream_info::width() const noexcept { return fields_->parameters->width; }
int stream_info::height() const noexcept { return fields_->parameters->height; }
std::optional<rational> stream_info::frame_rate() const noexcept { return fields_->frame_rate; }
rational stream_info::sample_aspect() const noexcept { return fields_->sample_aspect; }
display_orientation stream_info::orientation() const noexcept { return fields_->orientation; }
int stream_info::sample_rate() const noexcept { return fields_->parameters->sample_rate; }
int stream_info::channels() const noexcept { return fields_->parameters->ch_layout.nb_channels; }
const AVCodecParameters& stream_info::parameters() const noexcept { return *fields_->parameters; }

}  // namespace lade::media
