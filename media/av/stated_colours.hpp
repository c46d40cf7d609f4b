// Which colours the streams of a codec and the files of a container can state.

#pragma once

#include <lade/media/av/stream_info.hpp>

#include <span>
#include <string>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

namespace lade::media {

// Where one field of the colours of a video is stated, as FFmpeg's encoder writes it and its
// decoder reads it.
struct colour_rule {
  bool in_stream = false;            // by the stream itself; else only by its container
  std::span<const int> values = {};  // that can be stated; all if empty
};

struct colour_rules {
  colour_rule matrix;
  colour_rule primaries;
  colour_rule transfer;
  colour_rule range;
};
colour_rules colour_rules_of(AVCodecID codec) noexcept;

// Whether two names mean the same numbers (ITU-T H.273).
bool is_same_matrix(AVColorSpace a, AVColorSpace b) noexcept;
bool is_same_primaries(AVColorPrimaries a, AVColorPrimaries b) noexcept;
bool is_same_transfer(AVColorTransferCharacteristic a, AVColorTransferCharacteristic b) noexcept;

// Primaries and transfer that go with a matrix.
AVColorPrimaries primaries_of(AVColorSpace matrix) noexcept;
AVColorTransferCharacteristic transfer_of(AVColorSpace matrix) noexcept;

// What decoders take where a file states nothing.
AVColorSpace usual_matrix(AVPixelFormat format, int width, int height) noexcept;
AVColorRange usual_range(AVPixelFormat format) noexcept;

// Throws error(unsupported), naming encoder and field, if neither the stream of `encoder` nor a
// file of the format states its colours, and decoders would take others. `doing` is the text of
// errors.
void check_stated_colours(const AVOutputFormat& format, const AVCodecParameters& parameters,
                          const std::string& encoder, const std::string& doing);

}  // namespace lade::media
