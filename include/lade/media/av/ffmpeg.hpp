// The FFmpeg that the program runs with: its version, what it has, and its messages.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lade::media {

// The version of libavcodec's release: "5.1.9-0+deb12u1".
std::string ffmpeg_version();

// The names that the options of decoders, encoders, demuxers, muxers and filter_packets take, in
// alphabetical order.
std::vector<std::string> ffmpeg_decoders();
std::vector<std::string> ffmpeg_encoders();
std::vector<std::string> ffmpeg_demuxers();
std::vector<std::string> ffmpeg_muxers();
std::vector<std::string> ffmpeg_bitstream_filters();

// Whether it has one of these names.
bool has_ffmpeg_decoder(std::string_view name);
bool has_ffmpeg_encoder(std::string_view name);

// Messages. What FFmpeg says of an error in a call of lade becomes part of the exception's text:
// "open a.mp4: Invalid data found when processing input (moov atom not found)". Its other messages
// in such calls are dropped. For that, the first call of lade that uses FFmpeg installs a callback
// for the whole process (av_log_set_callback), which passes the messages of all other calls on to
// FFmpeg's own. A program that wants them elsewhere installs its callback later, and gets all of
// them.

// Which of FFmpeg's messages are printed to standard error as well. `quiet` by default.
enum class ffmpeg_log : std::uint8_t { quiet, errors, warnings, everything };

// Sets it for the whole process. Any thread.
void set_ffmpeg_log(ffmpeg_log printed) noexcept;
ffmpeg_log get_ffmpeg_log() noexcept;

}  // namespace lade::media
