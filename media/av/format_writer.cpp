#include "format_writer.hpp"

#include "av_options.hpp"
#include "container_codecs.hpp"
#include "stated_colours.hpp"
#include "stream_fields.hpp"

#include <lade/error.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

extern "C" {
#include <libavcodec/bsf.h>
#include <libavutil/display.h>
#include <libavutil/mathematics.h>
#include <libavutil/mem.h>
#include <libavutil/opt.h>
}

namespace lade::media {

void av_output_deleter::operator()(AVFormatContext* freed) const noexcept {
  avformat_free_context(freed);
}

std::string format_writer::doing(std::string_view operation) const {
  return fmt::format("{} {}", operation, name_);
}

int format_writer::check(int result, std::string_view operation, const av_messages& messages) {
  if (const auto failure = io_.take_failure()) std::rethrow_exception(failure);
  return check_av(result, doing(operation), messages);
}

// Makes a call. If it fails, the file cannot be continued.
template <class Call>
void format_writer::or_fail(Call call) try {
  call();
} catch (...) {
  if (stage_ != stage::finished) stage_ = stage::failed;
  throw;
}

// Formats of several files, of devices and of networks.
static bool writes_other_files(const AVOutputFormat& format) noexcept {
  constexpr std::array<std::string_view, 9> refused{
      "hls",        "dash",      "segment", "tee", "fifo", "hds", "smoothstreaming",
      "webm_chunk", "asf_stream"};
  const std::string_view name = format.name;
  return (format.flags & AVFMT_NOFILE) != 0 ||
         std::any_of(refused.begin(), refused.end(),
                     [&](auto each) { return name.find(each) != name.npos; });
}

const AVOutputFormat& find_output_format(std::string_view name, const std::string& path) {
  const av_messages messages;
  const auto text = std::string(name);
  const auto* found = name.empty() ? av_guess_format(nullptr, path.c_str(), nullptr)
                                   : av_guess_format(text.c_str(), nullptr, nullptr);
  if (found == nullptr)
    throw error(
        errc::unsupported, "write " + path,
        name.empty() ? "FFmpeg has no format for its extension" : "FFmpeg has no format " + text);
  if (writes_other_files(*found))
    throw error(errc::unsupported, "write " + path,
                fmt::format("the format {} is not one of single files", found->name));
  if (!holds_packets(*found))
    throw error(errc::unsupported, "write " + path,
                fmt::format("the format {} holds no packets", found->name));
  return *found;
}

static void set_all_options(AVFormatContext& context, std::string_view text,
                            std::string_view doing) {
  auto parsed = parse_av_options(text, doing);
  AVDictionary* options = parsed.release();
  const av_messages messages;
  const int result = av_opt_set_dict2(&context, &options, AV_OPT_SEARCH_CHILDREN);
  parsed.reset(options);
  if (result == AVERROR_OPTION_NOT_FOUND || result >= 0) refuse_unknown_options(options, doing);
  check_av(result, doing, messages);
}

format_writer::format_writer(std::unique_ptr<byte_output> output, std::string name,
                             const AVOutputFormat& format, std::string_view options)
    : name_(std::move(name)), output_(std::move(output)), io_(*output_, name_) {
  const av_messages messages;
  AVFormatContext* context = nullptr;
  const int result = avformat_alloc_output_context2(&context, &format, nullptr, name_.c_str());
  context_.reset(context);
  check(result, "write", messages);
  io_.attach(*context);
  context->protocol_whitelist = check_av(av_strdup(""));
  set_all_options(*context, options, doing("write"));
}

format_writer::~format_writer() {
  const av_messages messages;
  context_.reset();
}

void format_writer::require_adding(std::string_view operation) const {
  if (stage_ == stage::adding) return;
  throw error(
      errc::invalid_argument, doing(operation),
      stage_ == stage::failed ? "an earlier call failed" : "its first packet has been written");
}

format_writer::track& format_writer::track_of(int stream) {
  if (stream >= 0 && static_cast<std::size_t>(stream) < tracks_.size())
    return tracks_[static_cast<std::size_t>(stream)];
  throw error(errc::invalid_argument, doing(fmt::format("write stream {} of", stream)),
              fmt::format("it has {}", tracks_.size()));
}

// MP4's box for VP8 and VP9 requires their pixel format.
static void check_pixel_format(const AVOutputFormat& format, const stream_info& stream,
                               std::string_view doing) {
  const auto& parameters = stream.parameters();
  const bool stated =
      parameters.codec_id == AV_CODEC_ID_VP8 || parameters.codec_id == AV_CODEC_ID_VP9;
  if (stated && is_of_mov_family(format) && parameters.format == AV_PIX_FMT_NONE)
    throw error(errc::unsupported, doing,
                fmt::format("{} files state the pixel format of {}, which {} does not", format.name,
                            stream.codec(), stream.name()));
}

// FFmpeg's strings end at the first NUL.
static void check_metadata(const metadata& entries, std::string_view doing) {
  for (const auto& [key, value] : entries)
    if (key.find('\0') != key.npos || value.find('\0') != value.npos)
      throw error(errc::invalid_argument, doing,
                  fmt::format("the key or value of {} has a NUL", key.c_str()));
}

static void fill_dictionary(AVDictionary*& into, const metadata& from) {
  av_dict_free(&into);
  for (const auto& [key, value] : from)
    check_av(av_dict_set(&into, key.c_str(), value.c_str(), AV_DICT_MULTIKEY), "set metadata");
}

// The codec tag of the source's container, if it means the same in this container.
static std::uint32_t kept_tag(const AVOutputFormat& format,
                              const AVCodecParameters& parameters) noexcept {
  const auto* tags = format.codec_tag;
  const bool same =
      tags != nullptr && av_codec_get_id(tags, parameters.codec_tag) == parameters.codec_id;
  return same ? parameters.codec_tag : 0;
}

static void fill_stream(AVStream& into, const AVOutputFormat& format, const stream_info& from) {
  const auto& parameters = from.parameters();
  check_av(avcodec_parameters_copy(into.codecpar, &parameters), "copy codec parameters");
  into.codecpar->codec_tag = kept_tag(format, parameters);
  into.time_base = av_rational_of(from.time_base());
  if (const auto rate = from.frame_rate()) into.avg_frame_rate = av_rational_of(*rate);
  if (from.kind() == stream_kind::video)
    into.sample_aspect_ratio = into.codecpar->sample_aspect_ratio =
        av_rational_of(from.sample_aspect());
  fill_dictionary(into.metadata, from.metadata());
}

int format_writer::add(const stream_info& stream) {
  require_adding("add a stream to");
  const auto& format = *context_->oformat;
  if (!holds_codec(format, stream.parameters().codec_id))
    throw error(errc::unsupported, doing("write"),
                fmt::format("{} files do not hold {}", format.name, stream.codec()));
  check_pixel_format(format, stream, doing("write"));
  if (const auto& encoder = stream.stored().encoder;
      stream.kind() == stream_kind::video && !encoder.empty())
    check_stated_colours(format, stream.parameters(), encoder, doing("write"));
  or_fail([&] { make_track(stream); });
  return static_cast<int>(tracks_.size()) - 1;
}

void format_writer::make_track(const stream_info& stream) {
  auto& made = *check_av(avformat_new_stream(context_.get(), nullptr));
  fill_stream(made, *context_->oformat, stream);
  tracks_.push_back({.source = stream,
                     .orientation = stream.orientation(),
                     .filter = nullptr,
                     .times = std::nullopt,
                     .last_dts = std::nullopt});
}

void format_writer::set_metadata(const metadata& of_file) {
  require_adding("set metadata of");
  check_metadata(of_file, doing("set metadata of"));
  fill_dictionary(context_->metadata, of_file);
}

void format_writer::set_metadata(int stream, const metadata& of_stream) {
  require_adding("set metadata of");
  (void)track_of(stream);
  check_metadata(of_stream, doing("set metadata of"));
  fill_dictionary(context_->streams[stream]->metadata, of_stream);
}

void format_writer::set_orientation(int stream, display_orientation orientation) {
  require_adding("set the orientation of");
  auto& output = track_of(stream);
  constexpr std::array turns{0, 90, 180, 270};
  const bool is_turn = std::find(turns.begin(), turns.end(), orientation.degrees) != turns.end();
  if (output.source.kind() != stream_kind::video || !is_turn)
    throw error(errc::invalid_argument, doing("set the orientation of"),
                is_turn ? "the stream is no video" : "degrees must be 0, 90, 180 or 270");
  output.orientation = orientation;
}

// Writes the inverse of orientation_of_matrix (stream_info.cpp). An upright orientation is written
// if the source had another one.
void format_writer::state_orientation(int stream) {
  const auto& output = track_of(stream);
  if (output.orientation == output.source.orientation() &&
      output.orientation == display_orientation{})
    return;
  if (output.orientation != display_orientation{} && !states_orientation(*context_->oformat))
    throw error(errc::unsupported, doing("write"),
                std::string(context_->oformat->name) +
                    " files do not state an orientation; set_orientation() to upright drops it");
  std::array<std::int32_t, 9> matrix;
  av_display_rotation_set(matrix.data(), output.orientation.degrees);
  if (output.orientation.mirrored) mirror_before_turning(matrix.data());
  check_av(set_display_matrix(*context_->streams[stream], matrix.data()), doing("write"));
}

// Whether the headers of a stream have start codes, so that packets can start with them.
static bool has_start_codes(const AVCodecParameters& parameters) noexcept {
  constexpr std::array<AVCodecID, 8> codecs{
      AV_CODEC_ID_MPEG1VIDEO, AV_CODEC_ID_MPEG2VIDEO, AV_CODEC_ID_MPEG4, AV_CODEC_ID_H264,
      AV_CODEC_ID_HEVC,       AV_CODEC_ID_VVC,        AV_CODEC_ID_CAVS,  AV_CODEC_ID_AVS2};
  constexpr std::array<std::uint8_t, 4> code{0, 0, 0, 1};
  if (std::find(codecs.begin(), codecs.end(), parameters.codec_id) == codecs.end()) return false;
  return parameters.extradata_size > 3 &&
         (std::equal(code.begin() + 1, code.end(), parameters.extradata) ||
          std::equal(code.begin(), code.end(), parameters.extradata));
}

// Containers such as MP4 store the headers of a stream once. Others, such as MPEG-TS, need them
// before each key frame: a filter inserts them.
void format_writer::filter_headers(int stream) {
  auto& output = track_of(stream);
  const auto& parameters = output.source.parameters();
  const bool has_place = (context_->oformat->flags & AVFMT_GLOBALHEADER) != 0;
  if (has_place || !has_start_codes(parameters) || !has_headers_apart(output.source)) return;
  const av_messages messages;
  AVBSFContext* made = nullptr;
  check_av(av_bsf_list_parse_str("dump_extra", &made), doing("write"), messages);
  output.filter.reset(made);
  made->time_base_in = av_rational_of(output.source.time_base());
  check_av(avcodec_parameters_copy(made->par_in, &parameters), doing("write"));
  check_av(av_bsf_init(made), doing("write"), messages);
}

// "h264, aac"
std::string format_writer::codecs() const {
  std::string names;
  for (const auto& each : tracks_)
    names.append(names.empty() ? "" : ", ").append(each.source.codec());
  return names;
}

// Throws if FFmpeg's muxer has logged that the file cannot be read back. It does so at the start of
// the file, or at a packet.
void format_writer::refuse_unreadable(const av_messages& messages) const {
  const auto fault = says_unreadable(messages);
  if (!fault.empty())
    throw error(
        errc::unsupported, doing("write"),
        fmt::format("{} files do not hold {}: {}", context_->oformat->name, codecs(), fault));
}

// If FFmpeg's muxer fails before the first packet, it does not support one of the streams.
void format_writer::begin_file() {
  av_messages messages;
  messages.keep_warnings();
  const int result = avformat_write_header(context_.get(), nullptr);
  if (const auto failure = io_.take_failure()) std::rethrow_exception(failure);
  if (result == AVERROR(ENOMEM)) check_av(result, doing("write"), messages);
  refuse_unreadable(messages);
  if (result < 0)
    throw error(errc::unsupported, doing("write"),
                fmt::format("FFmpeg begins no {} files of {}: {}{}", context_->oformat->name,
                            codecs(), av_category().message(result), messages.addition()));
}

void format_writer::begin() {
  if (stage_ == stage::writing) return;
  if (stage_ != stage::adding)
    throw error(errc::invalid_argument, doing("write"),
                stage_ == stage::failed ? "an earlier call failed" : "it is finished");
  if (tracks_.empty()) throw error(errc::invalid_argument, doing("write"), "it has no streams");
  for (int i = 0; i < static_cast<int>(tracks_.size()); ++i) {
    state_orientation(i);
    filter_headers(i);
  }
  begin_file();
  stage_ = stage::writing;
}

// Checks timestamps that FFmpeg would refuse without a message. Returns the fault, or null.
static const char* fault_of_times(const AVPacket& next, std::optional<std::int64_t> last,
                                  int flags) noexcept {
  if ((flags & AVFMT_NOTIMESTAMPS) != 0) return nullptr;
  if (next.pts == AV_NOPTS_VALUE && next.dts == AV_NOPTS_VALUE) return "a packet has no time";
  if (next.dts == AV_NOPTS_VALUE) return "a packet has no decoding time, as others have";
  const bool repeats = (flags & AVFMT_TS_NONSTRICT) != 0;
  if (last && (repeats ? next.dts < *last : next.dts <= *last))
    return "a packet goes back in time, or has the time of the one before";
  if (next.pts != AV_NOPTS_VALUE && next.pts < next.dts)
    return "a packet is shown before it is decoded";
  return nullptr;
}

static std::int64_t rescaled(std::int64_t timestamp, AVRational from, AVRational to,
                             std::string_view doing) {
  if (timestamp == AV_NOPTS_VALUE) return timestamp;
  const auto result = av_rescale_q(timestamp, from, to);
  if (result == AV_NOPTS_VALUE)
    throw error(errc::limit_exceeded, doing, "a timestamp does not fit into 64 bits");
  return result;
}

void format_writer::write_rescaled(int stream, AVPacket& next) {
  auto& output = track_of(stream);
  const auto from = av_rational_of(output.source.time_base());
  const auto to = context_->streams[stream]->time_base;
  const auto text = doing(fmt::format("write stream {} of", stream));
  next.pts = rescaled(next.pts, from, to, text);
  next.dts = rescaled(next.dts, from, to, text);
  next.duration = rescaled(next.duration, from, to, text);
  next.time_base = to;
  next.stream_index = stream;
  next.pos = -1;
  if (const char* fault = fault_of_times(next, output.last_dts, context_->oformat->flags))
    throw error(errc::invalid_argument, text, fault);
  output.last_dts = next.dts;
  av_messages messages;
  messages.keep_warnings();
  check(av_interleaved_write_frame(context_.get(), &next), "write", messages);
  refuse_unreadable(messages);
}

void format_writer::write_filtered(int stream, AVPacket& next) {
  auto* filter = track_of(stream).filter.get();
  const av_messages messages;
  check(av_bsf_send_packet(filter, &next), "write", messages);
  while (true) {
    const int result = av_bsf_receive_packet(filter, &next);
    if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) return;
    check(result, "write", messages);
    write_rescaled(stream, next);
  }
}

// Writes packets whose decoding times are known by now.
void format_writer::write_timed(int stream, bool last) {
  auto& times = *track_of(stream).times;
  while (auto next = times.take(last)) write_rescaled(stream, *next);
}

// Refuses frames that an edit list of the source hides: without it, they would be shown.
static void check_discarded(const AVOutputFormat& format, const stream_info& stream,
                            const packet& next, std::string_view doing) {
  if (next.is_discarded() && stream.kind() == stream_kind::video && !is_of_mov_family(format))
    throw error(errc::unsupported, doing,
                fmt::format("{} files have no edit list, which cuts off frames of {}", format.name,
                            stream.name()));
}

// Whether to drop the last packet of FLAC's encoder, which has only side data: these containers
// would store it as an empty frame.
static bool is_excluded(const AVOutputFormat& format, const packet& next) noexcept {
  const std::string_view name = format.name;
  return next.data().empty() && (name == "avi" || name == "nut");
}

static bool can_reorder(const stream_info& stream) noexcept {
  const auto* codec = avcodec_descriptor_get(stream.parameters().codec_id);
  return codec != nullptr && (codec->props & AV_CODEC_PROP_REORDER) != 0;
}

void format_writer::write(int stream, const packet& next) {
  or_fail([&] { write_packet(stream, next); });
}

void format_writer::finish() {
  or_fail([&] { write_end(); });
}

void format_writer::write_packet(int stream, const packet& next) {
  auto& output = track_of(stream);
  begin();
  check_discarded(*context_->oformat, output.source, next, doing("write"));
  if (is_excluded(*context_->oformat, next)) return;
  av_packet copy(check_av(av_packet_clone(&next.get())));
  if (output.filter) return write_filtered(stream, *copy);
  const bool shown_only = next.pts() && !next.dts();
  if (!output.last_dts && !output.times && shown_only)
    output.times.emplace(can_reorder(output.source));
  if (!output.times || !shown_only) return write_rescaled(stream, *copy);
  output.times->add(std::move(copy));
  write_timed(stream, false);
}

void format_writer::write_end() {
  begin();
  for (int i = 0; i < static_cast<int>(tracks_.size()); ++i)
    if (tracks_[static_cast<std::size_t>(i)].times) write_timed(i, true);
  const av_messages messages;
  check(av_write_trailer(context_.get()), "finish", messages);
  check(io_.flush(), "finish", messages);
  output_->finish();
  stage_ = stage::finished;
}

}  // namespace lade::media
