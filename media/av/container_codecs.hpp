// Which codecs FFmpeg's containers hold such that they are read again. Its muxers take more.

#pragma once

#include "av_messages.hpp"

#include <string_view>

extern "C" {
#include <libavformat/avformat.h>
}

namespace lade::media {

// Whether files of the format hold packets: those of checksums and of metadata do not.
bool holds_packets(const AVOutputFormat& format) noexcept;

// Whether files of the format may hold the codec. What depends on more than the codec, FFmpeg's
// muxers tell; see says_unreadable.
bool holds_codec(const AVOutputFormat& format, AVCodecID codec) noexcept;

// What FFmpeg's muxer has said of a stream that will not be read again; empty if nothing. `said`
// must keep warnings.
std::string_view says_unreadable(const av_messages& messages) noexcept;

}  // namespace lade::media
