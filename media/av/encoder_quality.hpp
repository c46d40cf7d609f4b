// What the members `bit_rate` and `quality` of options mean to FFmpeg's encoders.

#pragma once

#include <string_view>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/dict.h>
}

namespace lade::media {

// Which of the two are given.
struct rate_members {
  bool bit_rate = false;
  bool quality = false;
};

// Throws error(invalid_argument) for a bit rate that the encoder does not have, and for a bit rate
// and a quality of an encoder that uses one of them; `doing` is the text of errors.
void check_rate_members(const AVCodec& encoder, const rate_members& members,
                        std::string_view doing);

// The given member that an option of the encoder, or of the library in it, would override or
// repeat; null if there is none.
const char* overridden_member(const AVCodec& encoder, const AVDictionaryEntry& entry,
                              const rate_members& members) noexcept;
const char* overridden_in_library(std::string_view key, std::string_view value,
                                  const rate_members& members) noexcept;

// Sets the quality of an encoder that is not open: in `options` if it has an option for it, else in
// the context. Throws error(invalid_argument), naming the range, for a quality that the encoder
// does not have.
void set_quality(AVCodecContext& context, double quality, AVDictionary*& options,
                 std::string_view doing);

}  // namespace lade::media
