// Refuses options of FFmpeg's encoders that duplicate members of lade's options, or that read or
// write files.

#pragma once

#include "av_messages.hpp"
#include "encoder_quality.hpp"

#include <string>
#include <string_view>

extern "C" {
#include <libavcodec/avcodec.h>
}

namespace lade::media {

// Throws error(invalid_argument) naming a refused option, with `doing` as the operation.
void check_encoder_options(const AVCodec& encoder, const AVDictionary* options,
                           const rate_members& members, std::string_view doing);

// Makes libx265 print nothing, unless the options set its log level.
void silence_library(const AVCodec& encoder, AVDictionary*& options);

// Throws error(invalid_argument) if an encoder has warned about an unknown option: for x264-params
// and others, a warning is the only sign.
void refuse_ignored_options(const av_messages& messages, std::string_view doing);

// The encoder's input format as text: size, pixel or sample format, rate, channels and time base.
std::string stated_format(const AVCodecContext& context);

}  // namespace lade::media
