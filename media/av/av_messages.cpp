#include "av_messages.hpp"

#include <lade/media/av.hpp>
#include <lade/media/av/ffmpeg.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <mutex>

extern "C" {
#include <libavformat/avformat.h>
#include <libavutil/error.h>
#include <libavutil/log.h>
}

namespace lade::media {

constinit thread_local av_messages* av_messages::current = nullptr;

static constinit std::atomic<ffmpeg_log> printed_messages = ffmpeg_log::quiet;

void set_ffmpeg_log(ffmpeg_log printed) noexcept { printed_messages = printed; }
ffmpeg_log get_ffmpeg_log() noexcept { return printed_messages; }

static bool is_printed(int level) noexcept {
  switch (printed_messages.load(std::memory_order_relaxed)) {
    case ffmpeg_log::quiet: return false;
    case ffmpeg_log::errors: return level <= AV_LOG_ERROR;
    case ffmpeg_log::warnings: return level <= AV_LOG_WARNING;
    case ffmpeg_log::everything: return true;
  }
  return false;
}

// Whether a message of the HEVC or H.264 decoder reports a missing reference picture; some are
// debug messages. `format`: the format string of the message.
static bool reports_missing_reference(std::string_view format) noexcept {
  constexpr std::array<std::string_view, 3> begins{
      "Could not find ref with POC", "reference picture missing during reorder", "Frame num gap"};
  return std::any_of(begins.begin(), begins.end(),
                     [&](auto each) { return format.starts_with(each); });
}

// `arguments`: of a message that starts with `of_lost_packets`: the packet identifier, the expected
// counter, and the actual one.
static lost_packets lost_packets_of(void* source, va_list arguments) noexcept {
  va_list copy;
  va_copy(copy, arguments);
  const int stream_id = va_arg(copy, int);
  (void)va_arg(copy, int);
  const int counter = va_arg(copy, int);
  va_end(copy);
  return {stream_id, avio_tell(static_cast<AVFormatContext*>(source)->pb), counter};
}

static constexpr std::string_view of_lost_packets = "Continuity check failed for pid %d";

// FFmpeg's log callback; must not throw.
void take_av_message(void* source, int level, const char* format, va_list arguments) {
  auto* receiver = av_messages::current;
  if (receiver == nullptr) return av_log_default_callback(source, level, format, arguments);
  if (reports_missing_reference(format)) receiver->names_missing_reference_ = true;
  if (receiver->keeps_losses_ && std::string_view(format).starts_with(of_lost_packets))
    receiver->keep(lost_packets_of(source, arguments));
  const bool is_kept =
      level <= AV_LOG_ERROR || (level == AV_LOG_WARNING && receiver->keeps_warnings_);
  if (!is_kept && !is_printed(level)) return;
  std::array<char, 512> text{};
  if (std::vsnprintf(text.data(), text.size(), format, arguments) <= 0) return;
  if (is_printed(level)) std::fputs(text.data(), stderr);
  if (!is_kept) return;
  std::string_view message(text.data());
  while (message.ends_with('\n') || message.ends_with('.')) message.remove_suffix(1);
  try {
    if (level == AV_LOG_WARNING) {
      receiver->warnings_.emplace_back(message);
      return;
    }
    if (receiver->first_error_.empty()) receiver->first_error_ = message;
    receiver->last_error_ = message;
  } catch (const std::bad_alloc&) {}
}

void av_messages::keep(const lost_packets& loss) noexcept try {
  losses_.push_back(loss);
} catch (const std::bad_alloc&) {}

av_messages::av_messages() noexcept : outer_(std::exchange(current, this)) {
  static std::once_flag installed;
  std::call_once(installed, [] { av_log_set_callback(take_av_message); });
}

std::string av_messages::addition() const {
  return last_error_.empty() ? std::string() : " (" + last_error_ + ")";
}

int check_av(int result, std::string_view doing, const av_messages& messages) {
  if (result >= 0 || result == AVERROR_EXIT || messages.last_error().empty())
    return check_av(result, doing);
  throw error(av_error_code(result), doing, av_category().message(result) + messages.addition());
}

}  // namespace lade::media
