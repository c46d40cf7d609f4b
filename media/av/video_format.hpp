// Selects the pixel format and colours of an encoder.

#pragma once

#include "picture_converter.hpp"

#include <lade/media/av/frame.hpp>

#include <string_view>

extern "C" {
#include <libavcodec/avcodec.h>
}

namespace lade::media {

// Returns the pixel format of this name; if empty, the encoder's choice for video. Throws
// error(invalid_argument) if the encoder does not support it.
AVPixelFormat choose_pixel_format(const AVCodec& encoder, std::string_view name,
                                  std::string_view doing);

// The encoder's format that loses least information of `source`.
AVPixelFormat nearest_pixel_format(const AVCodec& encoder, AVPixelFormat source,
                                   std::string_view doing);

// Sets the colours of an encoder whose size and pixel format are set; see video_encode_options.
// Throws error(invalid_argument) for names that FFmpeg lacks.
void set_colours(AVCodecContext& context, const frame_colour& colour, std::string_view doing);

// Throws error(invalid_argument) for a frame with other primaries or another transfer than the
// encoder's stream, with `doing` as the operation.
void check_colours_of_frame(const AVFrame& next, const AVCodecContext& encoder,
                            std::string_view doing);

// The format of the encoder's pictures.
picture_format format_of_encoder(const AVCodecContext& context) noexcept;

}  // namespace lade::media
