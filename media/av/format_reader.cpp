#include "format_reader.hpp"

#include "av_options.hpp"
#include "stated_length.hpp"
#include "stream_fields.hpp"

#include <lade/error.hpp>
#include <lade/stop_requested.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

extern "C" {
#include <libavutil/mem.h>
}

namespace lade::media {

void av_format_deleter::operator()(AVFormatContext* freed) const noexcept {
  avformat_close_input(&freed);
}

void av_format_deleter::operator()(AVIOContext* freed) const noexcept {
  av_freep(&freed->buffer);
  avio_context_free(&freed);
}

std::string format_reader::doing(std::string_view operation) const {
  return fmt::format("{} {}", operation, name_);
}

int format_reader::check(int result, std::string_view operation, const av_messages& messages) {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  if (!refused_.empty())
    throw error(errc::unsupported, doing(operation), "the file refers to another one: " + refused_);
  if (result >= 0) return result;
  // FFmpeg treats an interrupted read as the end of the file, or as damage.
  if (stop_.stop_requested()) throw error(errc::stopped, doing(operation));
  return check_av(result, doing(operation), messages);
}

int format_reader::read_bytes(void* self, std::uint8_t* into, int bytes) noexcept {
  auto& reader = *static_cast<format_reader*>(self);
  if (reader.stop_.stop_requested()) return AVERROR_EXIT;
  try {
    const auto room = std::as_writable_bytes(std::span(into, static_cast<std::size_t>(bytes)));
    const auto count = reader.read_input(room, reader.position_);
    reader.position_ += count;
    if (count == 0) reader.check_input_end();
    return count == 0 ? AVERROR_EOF : static_cast<int>(count);
  } catch (...) {
    reader.failure_ = std::current_exception();
    return AVERROR_EXIT;
  }
}

std::size_t format_reader::read_input(std::span<std::byte> into, std::uint64_t offset) {
  const auto held = held_.at(offset);
  if (held.empty()) return input_->read(into, offset);
  const auto count = std::min(into.size(), held.size());
  std::copy_n(held.begin(), count, into.begin());
  return count;
}

std::int64_t format_reader::seek_bytes(void* self, std::int64_t offset, int whence) noexcept {
  auto& reader = *static_cast<format_reader*>(self);
  try {
    const auto size = static_cast<std::int64_t>(reader.input_->size());
    if ((whence & AVSEEK_SIZE) != 0) return size;
    const auto position = static_cast<std::int64_t>(reader.position_);
    const int from = whence & ~AVSEEK_FORCE;
    const std::int64_t base = from == SEEK_CUR ? position : from == SEEK_END ? size : 0;
    std::int64_t target = 0;
    if (__builtin_add_overflow(base, offset, &target) || target < 0) return AVERROR(EINVAL);
    reader.position_ = static_cast<std::uint64_t>(target);
    return target;
  } catch (...) {
    reader.failure_ = std::current_exception();
    return AVERROR_EXIT;
  }
}

int format_reader::interrupted(void* self) noexcept {
  return static_cast<format_reader*>(self)->stop_.stop_requested() ? 1 : 0;
}

int format_reader::refuse_open(AVFormatContext* format, AVIOContext** /*opened*/, const char* url,
                               int /*flags*/, AVDictionary** /*options*/) noexcept {
  auto& refused = static_cast<format_reader*>(format->opaque)->refused_;
  try {
    if (refused.empty()) refused = url;
  } catch (const std::bad_alloc&) {
    return AVERROR(ENOMEM);
  }
  return AVERROR(EPERM);
}

void format_reader::make_io() {
  constexpr int bytes = 32 << 10;
  auto* memory = static_cast<unsigned char*>(check_av(av_malloc(bytes)));
  io_.reset(avio_alloc_context(memory, bytes, 0, this, read_bytes, nullptr, seek_bytes));
  if (io_) return;
  av_free(memory);
  throw std::bad_alloc();
}

// Formats that refer to other files: playlists, manifests, devices and network sessions.
static bool refers_to_other_files(const AVInputFormat& format) noexcept {
  constexpr std::array<std::string_view, 10> refused{
      "hls", "dash", "concat", "imf", "sdp", "rtsp", "rtp", "sap", "vobsub", "webm_dash_manifest"};
  const std::string_view name = format.name;
  return (format.flags & AVFMT_NOFILE) != 0 ||
         std::any_of(refused.begin(), refused.end(),
                     [&](auto each) { return name == each || name.starts_with(each); });
}

static const AVInputFormat* find_format(std::string_view name, const std::string& doing) {
  if (name.empty()) return nullptr;
  const auto* found = av_find_input_format(std::string(name).c_str());
  if (found == nullptr)
    throw error(errc::unsupported, doing, "FFmpeg has no format " + std::string(name));
  return found;
}

static constexpr std::string_view mov = "mov,mp4,m4a,3gp,3g2,mj2";

// Reads the tables before FFmpeg does, which allocates as many entries as they state.
void format_reader::read_tables() {
  tables_ = read_movie_tables(find_movie(*input_, held_), input_->size(), doing("open"));
  if (tables_.has_fragments || input_->is_in_memory())
    check_fragments(*input_, held_, doing("open"));
}

format_reader::unopened_context format_reader::make_context(const AVInputFormat& format) {
  unopened_context context(check_av(avformat_alloc_context()), avformat_free_context);
  context->pb = io_.get();
  context->opaque = this;
  context->io_open = refuse_open;
  context->interrupt_callback = {interrupted, this};
  context->protocol_whitelist = check_av(av_strdup(""));
  // Without this, FFmpeg searches the samples for S/PDIF, which takes longer than reading them.
  if (std::string_view(format.name) == "wav") context->max_probe_packets = 0;
  return context;
}

void format_reader::open() {
  const av_messages messages;
  const auto* format = find_format(format_, doing("open"));
  // Newer releases detect HLS playlists only with this extension. No other format has it.
  if (format == nullptr)
    check(av_probe_input_buffer2(io_.get(), &format, ".m3u8", nullptr, 0, 0),
          "detect the format of", messages);
  if (refers_to_other_files(*format))
    throw error(errc::unsupported, doing("open"),
                fmt::format("files of the format {} refer to others", format->name));
  auto parsed = parse_av_options(options_, doing("open"));
  if (av_dict_get(parsed.get(), "protocol_whitelist", nullptr, 0) != nullptr)
    throw error(errc::invalid_argument, doing("open"),
                "protocol_whitelist is no option: FFmpeg opens nothing itself");
  if (format->name == mov) read_tables();
  auto made = make_context(*format);
  auto* context = made.release();
  auto* left = parsed.release();
  // Makes FFmpeg open the files to which tracks refer, so that they are refused by name.
  if (format->name == mov) av_dict_set(&left, "enable_drefs", "1", AV_DICT_DONT_OVERWRITE);
  const int result = avformat_open_input(&context, "", format, &left);  // frees it if it fails
  context_.reset(context);
  const av_dictionary unknown(left);
  check(result, "open", messages);
  refuse_unknown_options(left, doing("open"));
}

static constexpr std::string_view matroska = "matroska,webm";

bool format_reader::estimates_duration() const noexcept {
  return context_->duration_estimation_method == AVFMT_DURATION_FROM_BITRATE;
}

bool format_reader::is_mov() const noexcept { return context_->iformat->name == mov; }

bool format_reader::states_decoding_times() const noexcept {
  const std::string_view name = context_->iformat->name;
  return name != matroska && name != "nut";
}

// AVI is not listed: it does not state how many pictures its streams reorder, without which FFmpeg
// computes wrong times.
bool format_reader::states_parameters() const noexcept {
  constexpr std::array<std::string_view, 5> known{mov, matroska, "wav", "flac", "ogg"};
  if (std::find(known.begin(), known.end(), context_->iformat->name) == known.end()) return false;
  const std::span streams(context_->streams, context_->nb_streams);
  return std::all_of(streams.begin(), streams.end(), [](const auto* each) {
    const auto& entry = *each->codecpar;
    if (entry.codec_type == AVMEDIA_TYPE_VIDEO)
      return entry.codec_id != AV_CODEC_ID_NONE && entry.width > 0 && entry.height > 0;
    if (entry.codec_type == AVMEDIA_TYPE_AUDIO)
      return entry.codec_id != AV_CODEC_ID_NONE && entry.sample_rate > 0 &&
             entry.ch_layout.nb_channels > 0;
    return true;
  });
}

format_reader::format_reader(std::unique_ptr<byte_input> input, std::string name,
                             const demux_options& options, std::stop_token stop, bool probes)
    : name_(std::move(name)),
      input_(std::move(input)),
      stop_(std::move(stop)),
      format_(options.format),
      options_(options.options),
      damage_(options.damage),
      trusts_times_(options.trust_times),
      probes_(probes) {
  begin();
  const bool states_duration = !estimates_duration();
  const auto& edited = tables_.edited;
  for (const auto* stream : std::span(context_->streams, context_->nb_streams)) {
    const bool is_edited = std::find(edited.begin(), edited.end(),
                                     static_cast<std::uint32_t>(stream->id)) != edited.end();
    streams_.push_back(info_of(*stream, name_, states_duration, is_edited));
  }
}

void format_reader::begin() {
  constexpr std::uint64_t start = 32 << 10;  // as much as FFmpeg reads at once
  held_ = {};
  if (!input_->is_in_memory()) held_.read(*input_, 0, std::min(input_->size(), start));
  make_io();
  open();
  if (input_->is_in_memory()) check_file_end();
  if (probes_ && !states_parameters()) probe();
  held_ = {};
}

void format_reader::probe() {
  av_messages messages;
  messages.keep_losses();
  check(avformat_find_stream_info(context_.get(), nullptr), "find the streams of", messages);
  losses_.take(messages, *context_);
}

void format_reader::report_missing(const std::string& feature) {
  if (feature.empty()) return;
  if (damage_ == damage_policy::refuse) throw error(errc::invalid_data, doing("read"), feature);
  ++damaged_;
}

// A truncated input fails each read at its end; the damage is counted once.
void format_reader::check_input_end() {
  if (position_ >= input_->size() || input_ended_early_) return;
  report_missing(fmt::format("its reader ends after {} of {} bytes", position_, input_->size()));
  input_ended_early_ = true;
}

void format_reader::check_file_end() {
  if (std::exchange(checked_file_end_, true)) return;
  const auto missing = missing_end_of(*input_);
  report_missing(missing.empty() ? missing_samples() : missing);
}

// Describes samples that are missing at the end of an MP4 file; else empty. The last box may extend
// to the end of the file, so only the tables show it. Samples of fragments are unknown until read.
std::string format_reader::missing_samples() const {
  if (!is_mov() || tables_.has_fragments) return {};
  std::uint64_t end = 0;
  for (auto* stream : std::span(context_->streams, context_->nb_streams))
    for (int i = 0; i < avformat_index_get_entries_count(stream); ++i) {
      const auto* entry = avformat_index_get_entry(stream, i);
      if (entry->pos >= 0 && entry->size > 0)
        end = std::max(
            end, static_cast<std::uint64_t>(entry->pos) + static_cast<std::uint64_t>(entry->size));
    }
  if (end <= input_->size()) return {};
  return fmt::format("its tables list samples up to byte {} of {}", end, input_->size());
}

// A FLAC file states its number of samples (RFC 9639, 8.2).
void format_reader::check_last_packet() {
  if (std::string_view(context_->iformat->name) != "flac" || context_->nb_streams != 1) return;
  const auto samples = context_->streams[0]->duration;
  if (samples != AV_NOPTS_VALUE && last_end_ < samples)
    report_missing(
        fmt::format("its samples end at {} of the {} that its header states", last_end_, samples));
}

const stream_info& format_reader::stream(int index) const {
  if (index >= 0 && static_cast<std::size_t>(index) < streams_.size())
    return streams_[static_cast<std::size_t>(index)];
  throw error(errc::invalid_argument, doing(fmt::format("read stream {} of", index)),
              fmt::format("it has {}", streams_.size()));
}

const stream_info* best_stream(format_reader& file, stream_kind kind) {
  constexpr std::array types{AVMEDIA_TYPE_VIDEO, AVMEDIA_TYPE_AUDIO, AVMEDIA_TYPE_SUBTITLE,
                             AVMEDIA_TYPE_DATA, AVMEDIA_TYPE_ATTACHMENT};
  const int index = av_find_best_stream(&file.context(), types[static_cast<std::size_t>(kind)], -1,
                                        -1, nullptr, 0);
  return index < 0 ? nullptr : &file.stream(index);
}

const stream_info& require_stream(format_reader& file, stream_kind kind) {
  if (const auto* found = best_stream(file, kind)) return *found;
  throw error(errc::invalid_data, file.doing("read"),
              fmt::format("it has no {} stream", name(kind)));
}

void format_reader::select(std::span<const int> streams) {
  for (auto* stream : std::span(context_->streams, context_->nb_streams)) {
    const bool is_selected = streams.empty() || std::find(streams.begin(), streams.end(),
                                                          stream->index) != streams.end();
    stream->discard = is_selected ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
  }
}

bool format_reader::is_end(int result) {
  if (result >= 0 || failure_ || stop_.stop_requested()) return false;
  if (result == AVERROR_EOF && io_->error >= 0) {
    check_file_end();
    check_last_packet();
    return true;
  }
  const bool refused = damage_ == damage_policy::refuse || !refused_.empty();
  if (refused || result == AVERROR_EXIT || result == AVERROR(ENOMEM)) return false;
  ++damaged_;
  return true;
}

// Limits packets relative to the size of the file: the index of a malicious file could list the
// same bytes many times. The limit allows for compressed tracks of Matroska. One-byte packets are
// rare.
void format_reader::count(const AVPacket& next) {
  const auto file_bytes = input_->size();
  packet_bytes_ += static_cast<std::uint64_t>(next.size);
  // A table of MP4 takes 8 bytes per packet. Other formats store each packet: silence takes few
  // bytes.
  const auto most = file_bytes / (is_mov() ? 8 : 1);
  const bool many = ++packet_count_ > (1 << 16) && packet_count_ - (1 << 16) > most;
  constexpr std::uint64_t compressed = 16 << 20;
  const bool large = packet_bytes_ > compressed && (packet_bytes_ - compressed) / 4 > file_bytes;
  if (many || large)
    throw error(errc::limit_exceeded, doing("read"),
                fmt::format("it has {} packets of {} bytes in a file of {}", packet_count_,
                            packet_bytes_, file_bytes));
}

// Whether a short packet is the regular end of the file: FFmpeg reads CAF by a fixed number of
// samples, and flags a packet with fewer.
bool format_reader::ends_file(const AVPacket& last) {
  if (format() != "caf" || last.pos < 0 || last.size <= 0) return false;
  const auto end = static_cast<std::uint64_t>(last.pos) + static_cast<std::uint64_t>(last.size);
  const int frame = context_->streams[last.stream_index]->codecpar->block_align;
  return end == input_->size() && frame > 0 && last.size % frame == 0 && has_unknown_size(*input_);
}

av_packet format_reader::read() {
  has_read_ = true;
  if (stop_.stop_requested() || stop_requested()) throw error(errc::stopped, doing("read"));
  av_packet next(check_av(av_packet_alloc()));
  while (true) {
    av_messages messages;
    messages.keep_losses();
    const int result = av_read_frame(context_.get(), next.get());
    losses_.take(messages, *context_);
    if (result == AVERROR(EAGAIN)) continue;
    if (is_end(result)) return nullptr;
    check(result, "read", messages);
    losses_.flag(*next);
    const bool is_short = (next->flags & AV_PKT_FLAG_CORRUPT) != 0;
    if (is_short && ends_file(*next)) next->flags &= ~AV_PKT_FLAG_CORRUPT;
    const bool is_cut = (next->flags & AV_PKT_FLAG_CORRUPT) != 0;
    if (is_cut && stop_.stop_requested()) throw error(errc::stopped, doing("read"));
    count(*next);
    if (next->pts == AV_NOPTS_VALUE ||
        __builtin_add_overflow(next->pts, next->duration, &last_end_))
      last_end_ = 0;
    const auto index = static_cast<std::size_t>(next->stream_index);
    if (index < streams_.size() && context_->streams[index]->discard != AVDISCARD_ALL) return next;
    av_packet_unref(next.get());
  }
}

// Whether files of the format may be joined: program and transport streams (ISO/IEC 13818-1,
// 2.4.3.5), and Ogg (RFC 3533, 4).
bool format_reader::may_step_back() {
  if (trusts_times_ || (context_->iformat->flags & AVFMT_TS_DISCONT) == 0) return false;
  return std::string_view(context_->iformat->name) != "ogg" || is_chained_ogg(*input_);
}

// Ignores damage, which is reported when the packets are read.
void format_reader::find_steps_back() {
  rewind();
  select({});
  has_read_ = true;
  const av_messages messages;
  const av_packet next(check_av(av_packet_alloc()));
  std::vector<std::int64_t> latest(streams_.size(), INT64_MIN);
  for (int result = 0; result >= 0 || result == AVERROR(EAGAIN); av_packet_unref(next.get())) {
    if (stop_requested()) throw error(errc::stopped, doing("read"));
    result = av_read_frame(context_.get(), next.get());
    const auto i = static_cast<std::size_t>(next->stream_index);
    const auto time = next->dts != AV_NOPTS_VALUE ? next->dts : next->pts;
    if (result < 0 || i >= latest.size() || time == AV_NOPTS_VALUE) continue;
    auto& found = steps_back_[i];
    const step_back step{latest[i], time, next->pos};
    if (time < latest[i] && (!found || step.length() > found->length())) found = step;
    latest[i] = std::max(latest[i], time);
  }
  const bool interrupted = failure_ || stop_.stop_requested();
  if (interrupted) check(AVERROR_EXIT, "read", messages);
}

const std::optional<step_back>& format_reader::find_step_back(int stream) {
  if (!found_steps_back_) {
    steps_back_.assign(streams_.size(), std::nullopt);
    if (may_step_back()) find_steps_back();
    found_steps_back_ = true;
  }
  return steps_back_[static_cast<std::size_t>(stream)];
}

// Some writers produce times that go back slightly within one part.
bool format_reader::begins_part(int stream, const step_back& at) const {
  const auto seconds = at.length() * this->stream(stream).time_base().to_double();
  return seconds > most_wavering.to_double();
}

bool format_reader::report_step_back(int stream, const step_back& step) {
  if (!begins_part(stream, step)) return false;
  const auto& info = this->stream(stream);
  const auto seconds = [&](std::int64_t time) {
    return std::to_string(static_cast<double>(time) * info.time_base().to_double());
  };
  auto text =
      fmt::format("its times go back from {} s to {} s", seconds(step.from), seconds(step.to));
  if (step.position >= 0) text += fmt::format(" at byte {}", step.position);
  if (damage_ == damage_policy::refuse)
    throw error(errc::invalid_data, "read a window of " + info.name(), text);
  ++damaged_;
  return true;
}

void format_reader::seek(int stream, std::int64_t timestamp) {
  const av_messages messages;
  has_read_ = true;
  packet_bytes_ = packet_count_ = 0;
  losses_.clear();
  io_->error = 0;
  int result = av_seek_frame(context_.get(), stream, timestamp, AVSEEK_FLAG_BACKWARD);
  if (result < 0 && !failure_)
    result = avformat_seek_file(context_.get(), stream, INT64_MIN, timestamp, INT64_MAX, 0);
  if (result < 0 && !failure_) result = av_seek_frame(context_.get(), stream, 0, AVSEEK_FLAG_BYTE);
  check(result, "seek in", messages);
}

void format_reader::rewind() {
  if (!has_read_) return;
  auto io = std::move(io_);
  auto context = std::move(context_);
  const auto position = std::exchange(position_, 0);
  try {
    packet_bytes_ = packet_count_ = 0;
    losses_.clear();
    begin();
    has_read_ = false;
  } catch (...) {
    context_ = std::move(context);
    io_ = std::move(io);
    position_ = position;
    throw;
  }
}

}  // namespace lade::media
