#include "av.hpp"

#include <string>

extern "C" {
#include <libavutil/error.h>
}

namespace lade::media {

static const std::error_category& av_category() {
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
  if (result < 0) throw error(std::error_code(result, av_category()), doing);
  return result;
}

}  // namespace lade::media
