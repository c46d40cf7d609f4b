// What FFmpeg says in the calls that are made of it.

#pragma once

#include <lade/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lade::media {

// Where a transport stream misses packets of its own.
struct lost_packets {
  int stream_id = 0;          // the packet identifier
  std::int64_t position = 0;  // behind the packet that did not continue the one before it
  int counter = 0;            // of that packet
};

// While one lives, FFmpeg's messages on its thread belong to it. They may be nested: the innermost
// gets them.
class av_messages {
 public:
  av_messages() noexcept;
  av_messages(const av_messages&) = delete;
  av_messages& operator=(const av_messages&) = delete;
  ~av_messages() { current = outer_; }

  // The last error in FFmpeg's words, without a line's end; empty if there was none.
  const std::string& last_error() const noexcept { return last_error_; }

  // The first one, which is the cause where FFmpeg's layers report an error one after the other.
  const std::string& first_error() const noexcept { return first_error_; }

  // Whether a message said that a picture to which others refer is missing. FFmpeg's decoders of
  // H.264 and HEVC then invent it, and do not flag the frames that are made of it.
  bool names_missing_reference() const noexcept { return names_missing_reference_; }

  // Keeps warnings as well from now on.
  void keep_warnings() noexcept { keeps_warnings_ = true; }
  const std::vector<std::string>& warnings() const noexcept { return warnings_; }

  // Keeps from now on where FFmpeg's demuxer of transport streams finds that packets are missing.
  // It flags only what it has begun to collect, and says the rest to those who debug.
  void keep_losses() noexcept { keeps_losses_ = true; }
  const std::vector<lost_packets>& losses() const noexcept { return losses_; }

  // The last error as an addition to a text: " (moov atom not found)".
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

// check_av with what FFmpeg has said.
int check_av(int result, std::string_view doing, const av_messages& messages);

}  // namespace lade::media
