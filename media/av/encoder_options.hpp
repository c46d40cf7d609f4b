// Which options of FFmpeg's encoders are refused: those that state what members of the options of
// lade state, and those that read or write files.

#pragma once

#include "av_messages.hpp"
#include "encoder_quality.hpp"

#include <string>
#include <string_view>

extern "C" {
#include <libavcodec/avcodec.h>
}

namespace lade::media {

// Throws error(invalid_argument) naming an option that is refused; `doing` is the text of errors.
void check_encoder_options(const AVCodec& encoder, const AVDictionary* options,
                           const rate_members& members, std::string_view doing);

// Makes libx265 print nothing, unless the options say what it prints.
void silence_library(const AVCodec& encoder, AVDictionary*& options);

// Throws error(invalid_argument) if an encoder has warned of an option that it does not know:
// x264-params and others only cause a warning.
void refuse_ignored_options(const av_messages& messages, std::string_view doing);

// What is encoded, as a text: size, pixel or sample format, rate, channels and time base.
std::string stated_format(const AVCodecContext& context);

}  // namespace lade::media
