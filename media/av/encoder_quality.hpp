// Applies the members `bit_rate` and `quality` of options to FFmpeg's encoders.

#pragma once

#include <string_view>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/dict.h>
}

namespace lade::media {

// Whether each of the two is set.
struct rate_members {
  bool bit_rate = false;
  bool quality = false;
};

// Throws error(invalid_argument) if the encoder ignores bit rates, or if both members are set and
// it uses only one. `doing`: the operation.
void check_rate_members(const AVCodec& encoder, const rate_members& members,
                        std::string_view doing);

// The set member that an option of the encoder, or of its library, would override or repeat; null
// if there is none.
const char* overridden_member(const AVCodec& encoder, const AVDictionaryEntry& entry,
                              const rate_members& members) noexcept;
const char* overridden_in_library(std::string_view key, std::string_view value,
                                  const rate_members& members) noexcept;

// Sets the quality of an encoder that is not open: in `options` if it has an option for it, else in
// the context. Throws error(invalid_argument), naming the range, for an unsupported quality.
void set_quality(AVCodecContext& context, double quality, AVDictionary*& options,
                 std::string_view doing);

}  // namespace lade::media
