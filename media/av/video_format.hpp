// How an encoder stores pictures: its pixel format, and what the colours of a stream mean.

#pragma once

#include "picture_converter.hpp"

#include <lade/media/av/frame.hpp>

#include <string_view>

extern "C" {
#include <libavcodec/avcodec.h>
}

namespace lade::media {

// FFmpeg's pixel format of the name; the encoder's choice for video if empty. Throws
// error(invalid_argument) if the encoder does not have it.
AVPixelFormat choose_pixel_format(const AVCodec& encoder, std::string_view name,
                                  std::string_view doing);

// The format that loses least of pictures of `source`.
AVPixelFormat nearest_pixel_format(const AVCodec& encoder, AVPixelFormat source,
                                   std::string_view doing);

// Sets the colours of an encoder whose size and pixel format are set, as documented at
// video_encode_options. Throws error(invalid_argument) for names that FFmpeg does not have.
void set_colours(AVCodecContext& context, const frame_colour& colour, std::string_view doing);

// Throws error(invalid_argument) for a frame that states other primaries or another transfer than
// the encoder's stream; `doing` is the text of errors.
void check_colours_of_frame(const AVFrame& next, const AVCodecContext& encoder,
                            std::string_view doing);

// How the encoder stores pictures.
picture_format format_of_encoder(const AVCodecContext& context) noexcept;

}  // namespace lade::media
