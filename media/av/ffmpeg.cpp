#include <lade/media/av/ffmpeg.hpp>

#include <algorithm>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavcodec/bsf.h>
#include <libavformat/avformat.h>
#include <libavutil/avutil.h>
}

namespace lade::media {

std::string ffmpeg_version() { return av_version_info(); }

// The names of the objects that FFmpeg's iterator `next` returns and `selection` accepts.
template <class Next, class Wanted>
static std::vector<std::string> ffmpeg_names(const Next& next, const Wanted& selection) {
  std::vector<std::string> names;
  void* position = nullptr;
  while (const auto* each = next(&position))
    if (selection(*each)) names.emplace_back(each->name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

static constexpr auto all_of_ffmpeg = [](const auto&) { return true; };

std::vector<std::string> ffmpeg_decoders() {
  return ffmpeg_names(av_codec_iterate,
                      [](const AVCodec& each) { return av_codec_is_decoder(&each) != 0; });
}

std::vector<std::string> ffmpeg_encoders() {
  return ffmpeg_names(av_codec_iterate,
                      [](const AVCodec& each) { return av_codec_is_encoder(&each) != 0; });
}

std::vector<std::string> ffmpeg_demuxers() {
  return ffmpeg_names(av_demuxer_iterate, all_of_ffmpeg);
}
std::vector<std::string> ffmpeg_muxers() { return ffmpeg_names(av_muxer_iterate, all_of_ffmpeg); }
std::vector<std::string> ffmpeg_bitstream_filters() {
  return ffmpeg_names(av_bsf_iterate, all_of_ffmpeg);
}

bool has_ffmpeg_decoder(std::string_view name) {
  return avcodec_find_decoder_by_name(std::string(name).c_str()) != nullptr;
}

bool has_ffmpeg_encoder(std::string_view name) {
  return avcodec_find_encoder_by_name(std::string(name).c_str()) != nullptr;
}

}  // namespace lade::media
