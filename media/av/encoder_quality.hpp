// What the member `quality` of options means to FFmpeg's encoders.

#pragma once

#include <string_view>

extern "C" {
#include <libavcodec/avcodec.h>
}

namespace lade::media {

// Sets the quality of an encoder that is not open: in `options` if it has an option for it, else in
// the context. Throws error(invalid_argument), naming the range, for a quality that the encoder
// does not have.
void set_quality(AVCodecContext& context, double quality, AVDictionary*& options,
                 std::string_view doing);

}  // namespace lade::media
