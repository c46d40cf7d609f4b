#include "av_options.hpp"

#include <string>

#include <fmt/format.h>

extern "C" {
#include <libavutil/dict.h>
}

namespace lade::media {

av_dictionary parse_av_options(std::string_view text, std::string_view doing) {
  AVDictionary* parsed = nullptr;
  const int result = av_dict_parse_string(&parsed, std::string(text).c_str(), "=", ":", 0);
  av_dictionary options(parsed);
  if (result < 0)
    throw error(errc::invalid_argument, doing,
                fmt::format("options are key=value:key=value, not \"{}\"", text));
  return options;
}

void refuse_unknown_options(const AVDictionary* left, std::string_view doing) {
  const auto* entry = av_dict_get(left, "", nullptr, AV_DICT_IGNORE_SUFFIX);
  if (entry == nullptr) return;
  throw error(errc::invalid_argument, doing, std::string("unknown option ") + entry->key);
}

}  // namespace lade::media
