// Checks whether a container can hold a codec so that FFmpeg reads it back. FFmpeg's muxers accept
// more.

#pragma once

#include "av_messages.hpp"

#include <string_view>

extern "C" {
#include <libavformat/avformat.h>
}

namespace lade::media {

// Whether files of the format hold packets. Formats of checksums and of metadata do not.
bool holds_packets(const AVOutputFormat& format) noexcept;

// Whether files of the format may hold the codec. If more than the codec decides, FFmpeg's muxer
// logs a message: see says_unreadable.
bool holds_codec(const AVOutputFormat& format, AVCodecID codec) noexcept;

// The message of FFmpeg's muxer that a stream cannot be read back; empty if there is none.
// `messages` must keep warnings.
std::string_view says_unreadable(const av_messages& messages) noexcept;

}  // namespace lade::media
