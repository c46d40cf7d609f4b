#include <lade/media/av.hpp>

#include <string>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavcodec/bsf.h>
#include <libavutil/buffer.h>
#include <libavutil/dict.h>
#include <libavutil/error.h>
#include <libavutil/frame.h>
}

namespace lade::media {

void av_deleter::operator()(AVBSFContext* freed) const noexcept { av_bsf_free(&freed); }
void av_deleter::operator()(AVBufferRef* freed) const noexcept { av_buffer_unref(&freed); }
void av_deleter::operator()(AVCodecContext* freed) const noexcept { avcodec_free_context(&freed); }
void av_deleter::operator()(AVCodecParameters* freed) const noexcept {
  avcodec_parameters_free(&freed);
}
void av_deleter::operator()(AVDictionary* freed) const noexcept { av_dict_free(&freed); }
void av_deleter::operator()(AVFrame* freed) const noexcept { av_frame_free(&freed); }
void av_deleter::operator()(AVPacket* freed) const noexcept { av_packet_free(&freed); }

const std::error_category& av_category() noexcept {
  struct category final : std::error_category {
    const char* name() const noexcept override { return "ffmpeg"; }
    std::string message(int code) const override {
      char text[AV_ERROR_MAX_STRING_SIZE] = "";
      av_strerror(code, text, sizeof text);
      return text;
    }
    // AVERROR(errno) is a small number; FFmpeg's own codes are four letters.
    std::error_condition default_error_condition(int code) const noexcept override {
      constexpr int largest_errno = 4095;
      const int system = AVUNERROR(code);
      if (system > 0 && system <= largest_errno) return {system, std::generic_category()};
      return {code, *this};
    }
  };
  static const category instance;
  return instance;
}

std::error_code av_error_code(int result) noexcept {
  switch (result) {
    case AVERROR_EXIT: return errc::stopped;
    case AVERROR_INVALIDDATA: return errc::invalid_data;
    case AVERROR_PATCHWELCOME: return errc::unsupported;
    default: return {result, av_category()};
  }
}

int check_av(int result, std::string_view doing) {
  if (result >= 0) return result;
  if (result == AVERROR_EXIT) throw error(errc::stopped, doing);
  throw error(av_error_code(result), doing, av_category().message(result));
}

}  // namespace lade::media
