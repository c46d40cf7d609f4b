// The colours that the streams of a codec and the files of a container can state.

#pragma once

#include <lade/media/av/stream_info.hpp>

#include <span>
#include <string>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

namespace lade::media {

// How one field of a video's colours is stated, as FFmpeg's encoder writes and its decoder reads
// it.
struct colour_rule {
  bool in_stream = false;            // by the stream; else only by its container
  std::span<const int> values = {};  // values that can be stated; all if empty
};

struct colour_rules {
  colour_rule matrix;
  colour_rule primaries;
  colour_rule transfer;
  colour_rule range;
};
colour_rules colour_rules_of(AVCodecID codec) noexcept;

// Whether two enumerators have the same meaning (ITU-T H.273).
bool is_same_matrix(AVColorSpace a, AVColorSpace b) noexcept;
bool is_same_primaries(AVColorPrimaries a, AVColorPrimaries b) noexcept;
bool is_same_transfer(AVColorTransferCharacteristic a, AVColorTransferCharacteristic b) noexcept;

// The primaries and the transfer that usually accompany a matrix.
AVColorPrimaries primaries_of(AVColorSpace matrix) noexcept;
AVColorTransferCharacteristic transfer_of(AVColorSpace matrix) noexcept;

// The values that decoders assume if a file states none.
AVColorSpace usual_matrix(AVPixelFormat format, int width, int height) noexcept;
AVColorRange usual_range(AVPixelFormat format) noexcept;

// Throws error(unsupported), naming the encoder and the field, if neither the encoder's stream nor
// files of the format state the colours, and decoders would assume others. `doing`: the operation.
void check_stated_colours(const AVOutputFormat& format, const AVCodecParameters& parameters,
                          const std::string& encoder, const std::string& doing);

}  // namespace lade::media
