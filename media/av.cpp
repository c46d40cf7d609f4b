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
  };
  static const category instance;
  return instance;
}

int check_av(int result, std::string_view doing) {
  if (result >= 0) return result;
  if (result == AVERROR_EXIT) throw error(errc::stopped, doing);
  throw error(std::error_code(result, av_category()), doing);
}

}  // namespace lade::media
