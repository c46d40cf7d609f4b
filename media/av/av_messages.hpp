// Captures the messages that FFmpeg logs during calls.

#pragma once

#include <lade/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lade::media {

// A gap in the packets of a transport stream.
struct lost_packets {
  int stream_id = 0;          // the packet identifier
  std::int64_t position = 0;  // offset after the packet that follows the gap
  int counter = 0;            // continuity counter of that packet
};

// While an object exists, it receives FFmpeg's messages of its thread. Objects may be nested: the
// innermost one receives them.
class av_messages {
 public:
  av_messages() noexcept;
  av_messages(const av_messages&) = delete;
  av_messages& operator=(const av_messages&) = delete;
  ~av_messages() { current = outer_; }

  // FFmpeg's last error message, without the line break; empty if there was none.
  const std::string& last_error() const noexcept { return last_error_; }

  // The first error message: the cause, if several layers of FFmpeg report the same error.
  const std::string& first_error() const noexcept { return first_error_; }

  // Whether a message reported a missing reference picture. FFmpeg's decoders of H.264 and HEVC
  // then generate one, and do not flag the frames that depend on it.
  bool names_missing_reference() const noexcept { return names_missing_reference_; }

  // Records warnings as well, from now on.
  void keep_warnings() noexcept { keeps_warnings_ = true; }
  const std::vector<std::string>& warnings() const noexcept { return warnings_; }

  // Records gaps in transport streams, from now on. FFmpeg's demuxer flags only gaps inside a
  // packet of a stream, and reports others in debug messages.
  void keep_losses() noexcept { keeps_losses_ = true; }
  const std::vector<lost_packets>& losses() const noexcept { return losses_; }

  // The last error in parentheses, to append to a text: " (moov atom not found)".
  std::string addition() const;

 private:
  friend void take_av_message(void* source, int level, const char* format, va_list arguments);

  void keep(const lost_packets& loss) noexcept;

  static constinit thread_local av_messages* current;

  av_messages* outer_;
  std::string first_error_;
  std::string last_error_;
  bool names_missing_reference_ = false;
  bool keeps_warnings_ = false;
  std::vector<std::string> warnings_;
  bool keeps_losses_ = false;
  std::vector<lost_packets> losses_;
};

// As check_av, with FFmpeg's error message in the text.
int check_av(int result, std::string_view doing, const av_messages& messages);

}  // namespace lade::media
