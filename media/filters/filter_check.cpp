#include "filter_check.hpp"

#include "graph_pointers.hpp"

#include <lade/error.hpp>
#include <lade/media/av.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

extern "C" {
#include <libavutil/avstring.h>
#include <libavutil/mem.h>
#include <libavutil/opt.h>
}

namespace lade::media {

struct filter_use {
  std::string name;
  std::string arguments;
};

// Reads a text as avfilter_graph_parse2 does, with the same function for its words.
class filter_words {
 public:
  explicit filter_words(const std::string& text) : rest_(text.c_str()) {
    constexpr std::string_view flags = "sws_flags=";
    skip_blanks();
    if (std::string_view(rest_).starts_with(flags)) take_word(";");
    if (*rest_ == ';') ++rest_;
  }

  std::vector<filter_use> take_all() {
    std::vector<filter_use> all;
    while (skip_labels(), *rest_ != '\0') {
      filter_use next{.name = take_word("=,;["), .arguments = {}};
      if (*rest_ == '=') {
        ++rest_;
        next.arguments = take_word("[],;");
      }
      next.name = next.name.substr(0, next.name.find('@'));
      all.push_back(std::move(next));
      skip_labels();
      if (*rest_ != '\0') ++rest_;
    }
    return all;
  }

 private:
  std::string take_word(const char* ends) {
    const std::unique_ptr<char, void (*)(void*)> word(check_av(av_get_token(&rest_, ends)),
                                                      av_free);
    return word.get();
  }

  void skip_blanks() {
    const std::string_view text(rest_);
    rest_ += std::min(text.find_first_not_of(" \n\t\r"), text.size());
  }

  void skip_labels() {
    skip_blanks();
    while (*rest_ == '[') {
      ++rest_;
      take_word("]");
      if (*rest_ == ']') ++rest_;
      skip_blanks();
    }
  }

  const char* rest_;
};

// Whether an option names something outside of the graph.
static bool names_a_resource(std::string_view option) noexcept {
  constexpr std::array<std::string_view, 12> known{
      "plugin", "model",       "plot",  "result", "sofa",         "cover",
      "object", "destination", "input", "source", "bind_address", "url"};
  const bool file = option.find("file") != option.npos && option != "profile";
  return file || option.find("path") != option.npos ||
         std::find(known.begin(), known.end(), option) != known.end();
}

static bool opens_resources(const AVFilter& filter) {
  constexpr std::array<std::string_view, 8> known{"movie",  "amovie",     "subtitles", "ass",
                                                  "frei0r", "frei0r_src", "zmq",       "azmq"};
  if (std::find(known.begin(), known.end(), filter.name) != known.end()) return true;
  if (filter.priv_class == nullptr) return false;
  const AVOption* option = nullptr;
  const void* object = &filter.priv_class;
  while ((option = av_opt_next(object, option)) != nullptr)
    if (option->type == AV_OPT_TYPE_STRING && names_a_resource(option->name)) return true;
  return false;
}

void check_filters(std::string_view text) {
  const std::string copy(text);
  const av_filter_graph scratch(check_av(avfilter_graph_alloc()));
  for (const auto& use : filter_words(copy).take_all()) {
    const auto doing = "make the filter " + use.name + " of \"" + copy + "\"";
    const auto* filter = avfilter_get_by_name(use.name.c_str());
    if (filter == nullptr)
      throw error(errc::invalid_argument, doing, "FFmpeg has no filter of this name");
    if (opens_resources(*filter))
      throw error(errc::unsupported, doing, "it could open files or other resources");
    AVFilterContext* made = nullptr;
    const int result = avfilter_graph_create_filter(
        &made, filter, nullptr, use.arguments.empty() ? nullptr : use.arguments.c_str(), nullptr,
        scratch.get());
    if (result == AVERROR(ENOMEM)) throw std::bad_alloc();
    if (result < 0)
      throw error(
          errc::invalid_argument, doing,
          "FFmpeg refuses the options \"" + use.arguments + "\": " + av_category().message(result));
  }
}

}  // namespace lade::media
