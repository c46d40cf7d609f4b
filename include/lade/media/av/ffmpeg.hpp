// The FFmpeg that the program has loaded: its version, its components, and its messages.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lade::media {

// The version of libavcodec's release: "5.1.9-0+deb12u1".
std::string ffmpeg_version();

// The names of components, in alphabetical order, for options of decoders, encoders, demuxers,
// muxers and filter_packets.
std::vector<std::string> ffmpeg_decoders();
std::vector<std::string> ffmpeg_encoders();
std::vector<std::string> ffmpeg_demuxers();
std::vector<std::string> ffmpeg_muxers();
std::vector<std::string> ffmpeg_bitstream_filters();

// Whether the loaded FFmpeg has a component of this name.
bool has_ffmpeg_decoder(std::string_view name);
bool has_ffmpeg_encoder(std::string_view name);

// Messages. FFmpeg's messages about an error in a call of lade become part of the exception's text:
// "open a.mp4: Invalid data found when processing input (moov atom not found)". Its other messages
// in such calls are dropped.
//
// To receive messages, the first call of lade that uses FFmpeg installs a callback for the whole
// process (av_log_set_callback). The callback passes the messages of all other calls to FFmpeg's
// own. A program that installs its callback later receives all messages instead.

// The messages that FFmpeg also prints to standard error; `quiet` by default.
enum class ffmpeg_log : std::uint8_t { quiet, errors, warnings, everything };

// Set and return the level for the whole process. Any thread.
void set_ffmpeg_log(ffmpeg_log printed) noexcept;
ffmpeg_log get_ffmpeg_log() noexcept;

}  // namespace lade::media
