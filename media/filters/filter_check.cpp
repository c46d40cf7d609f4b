#include "filter_check.hpp"

#include "../av/av_messages.hpp"
#include "graph_pointers.hpp"

#include <lade/error.hpp>
#include <lade/media/av.hpp>

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

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

// Parses a text as avfilter_graph_parse2 does, with the same function for its words.
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

// Text options that cannot name a file or another resource: expressions, sizes, formats, colours,
// channels. The list allows instead of forbidding, so that a new option of a later FFmpeg is
// refused until it is listed. If an option has several names, the longest one is listed.
static constexpr std::string_view harmless_texts =
    " 0m 1m 2m 3m H all all_expr alpha alpha_expr alpha_modes alpha_radius angle args attacks "
    "b band_noise blacks blue blue_expr blues box_source brightness c c0 c0_expr c1 c1_expr "
    "c2 c2_expr c3 c3_expr cb_expr ch ch_layouts channel_layout channel_layouts channels "
    "chl_in chl_out chroma_radius color color_ranges color_spaces colors contrast cr_expr "
    "cscheme cyans d decays delays depths expr exprs fg1 fg2 fg3 fg4 fill fillcolor flags fps "
    "frames frequency gain gain_entry gains gamma gamma_b gamma_g gamma_r gamma_weight green "
    "green_expr greens h height imag in_color_matrix in_forder in_frot key layout lum_expr "
    "luma_radius m1 m2 m3 m4 magentas magnitude map mapping master matrix mpc neutrals "
    "out_color_matrix out_forder out_frot out_h out_w params pattern phase pix_fmts points "
    "poles qp ratio real red red_expr reds rorder rule s sample_fmts sample_rate sample_rates "
    "samples samples_per_frame saturation size sono_v speeds split subfilters sws_param "
    "thickness timestamps tlength value volume volume2 w weight_U weight_V weight_Y weights "
    "whites width x x0 x1 x2 x3 y y0 y1 y2 y3 yellows zeros zoom ";

static bool is_harmless_text(std::string_view option) {
  const auto word = std::string(" ").append(option).append(" ");
  return harmless_texts.find(word) != std::string_view::npos;
}

// Whether the value of an option is a string of any content, or a list of strings.
static bool is_text(const AVOption& option) noexcept {
  constexpr int list_flag = 1 << 16;  // AV_OPT_TYPE_FLAG_ARRAY, from FFmpeg 7.1 on
  const int type = static_cast<int>(option.type) & ~list_flag;
  return type == AV_OPT_TYPE_STRING || type == AV_OPT_TYPE_DICT;
}

// The longest name of an option: aliases have the same offset in the filter's struct.
static std::string_view full_name(const void* object, const AVOption& option) noexcept {
  std::string_view name = option.name;
  const AVOption* other = nullptr;
  while ((other = av_opt_next(object, other)) != nullptr)
    if (is_text(*other) && other->offset == option.offset &&
        std::string_view(other->name).size() > name.size())
      name = other->name;
  return name;
}

// A filter opens files only if a text option names them. nnedi's file has the name of a harmless
// option.
static bool opens_resources(const AVFilter& filter) {
  if (std::string_view(filter.name) == "nnedi") return true;  // its `weights` is a file
  if (filter.priv_class == nullptr) return false;
  const AVOption* option = nullptr;
  const void* object = &filter.priv_class;
  while ((option = av_opt_next(object, option)) != nullptr)
    if (is_text(*option) && !is_harmless_text(full_name(object, *option))) return true;
  return false;
}

static const AVFilter& find_harmless_filter(const std::string& name, std::string_view doing) {
  const auto* filter = avfilter_get_by_name(name.c_str());
  if (filter == nullptr)
    throw error(errc::invalid_argument, doing, "FFmpeg has no filter of this name");
  if (opens_resources(*filter))
    throw error(errc::unsupported, doing, "it could open files or other resources");
  return *filter;
}

// Creates the filter in `scratch`, a graph that never runs.
static void check_arguments(AVFilterGraph& scratch, const AVFilter& filter,
                            const std::string& arguments, std::string_view doing) {
  const av_messages messages;
  AVFilterContext* made = nullptr;
  const int result = avfilter_graph_create_filter(
      &made, &filter, nullptr, arguments.empty() ? nullptr : arguments.c_str(), nullptr, &scratch);
  if (result == AVERROR(ENOMEM)) throw std::bad_alloc();
  if (result < 0)
    throw error(errc::invalid_argument, doing,
                fmt::format(R"(FFmpeg refuses the options "{}": {}{})", arguments,
                            av_category().message(result), messages.addition()));
}

void check_filters(std::string_view text) {
  const std::string copy(text);
  const av_messages said_at_end;  // outlives the graph: filters log when they are destroyed
  const av_filter_graph scratch(check_av(avfilter_graph_alloc()));
  for (const auto& use : filter_words(copy).take_all()) {
    const auto doing = fmt::format(R"(make the filter {} of "{}")", use.name, copy);
    check_arguments(*scratch, find_harmless_filter(use.name, doing), use.arguments, doing);
  }
}

}  // namespace lade::media
