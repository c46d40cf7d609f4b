#include "encoder_options.hpp"

#include <lade/error.hpp>
#include <lade/media/av.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

extern "C" {
#include <libavutil/channel_layout.h>
#include <libavutil/dict.h>
#include <libavutil/opt.h>
}

namespace lade::media {

[[noreturn]] static void refuse_option(std::string_view key, const std::string& reason,
                                       std::string_view doing) {
  throw error(errc::invalid_argument, doing, fmt::format("the option {} {}", key, reason));
}

// Options that duplicate a member, and the member.
static const char* member_of_option(std::string_view key) noexcept {
  using pair = std::pair<std::string_view, const char*>;
  constexpr auto known = std::to_array<pair>({{"video_size", "width and height"},
                                              {"s", "width and height"},
                                              {"pixel_format", "pixel_format"},
                                              {"pix_fmt", "pixel_format"},
                                              {"time_base", "time_base"},
                                              {"framerate", "frame_rate"},
                                              {"r", "frame_rate"},
                                              {"b", "bit_rate"},
                                              {"ab", "bit_rate"},
                                              {"global_quality", "quality"},
                                              {"g", "gop"},
                                              {"bf", "b_frames"},
                                              {"threads", "threads"},
                                              {"colorspace", "colour.matrix"},
                                              {"color_range", "colour.range"},
                                              {"color_primaries", "colour.primaries"},
                                              {"color_trc", "colour.transfer"},
                                              {"aspect", "sample_aspect"},
                                              {"ar", "sample_rate"},
                                              {"ac", "channels"},
                                              {"sample_fmt", "sample_format"},
                                              {"channel_layout", "layout"},
                                              {"ch_layout", "layout"}});
  const auto* found =
      std::find_if(known.begin(), known.end(), [&](const pair& each) { return each.first == key; });
  return found == known.end() ? nullptr : found->second;
}

// Options that the encoder sets, or lade by the format.
static bool is_of_encoder(std::string_view key) noexcept {
  constexpr auto known = std::to_array<std::string_view>({"frame_size", "chroma_sample_location"});
  return std::find(known.begin(), known.end(), key) != known.end();
}

static bool names_file(std::string_view key) noexcept {
  const bool file = key.find("file") != key.npos && key.find("profile") == key.npos;
  return file || key == "stats";
}

static void check_flags(const AVCodec& encoder, const char* value, std::string_view doing) {
  const av_codec_context scratch(check_av(avcodec_alloc_context3(&encoder)));
  scratch->flags = AV_CODEC_FLAG_GLOBAL_HEADER;
  if (av_opt_set(scratch.get(), "flags", value, 0) < 0) return;  // avcodec_open2 reports it
  const int passes = AV_CODEC_FLAG_PASS1 | AV_CODEC_FLAG_PASS2;
  if ((scratch->flags & passes) != 0)
    refuse_option("flags", "asks for one of two passes, which are not offered", doing);
  if ((scratch->flags & AV_CODEC_FLAG_QSCALE) != 0)
    refuse_option("flags", "states what the member quality states", doing);
  if ((scratch->flags & AV_CODEC_FLAG_GLOBAL_HEADER) == 0)
    refuse_option("flags", "takes off global_header, which packets of lade have", doing);
}

// Options whose value is a list of a library's options.
static bool is_nested(std::string_view key) noexcept {
  return key.ends_with("-params") || key == "x264opts";
}

// A key as FFmpeg passes it to the library: without blanks, quotes and escapes.
static std::string plain_key(std::string_view key) {
  std::string plain;
  for (const char each : key)
    if (std::string_view(" \t\n\r\\'\"").find(each) == std::string_view::npos) plain += each;
  return plain;
}

// Libraries do not distinguish '_' and '-'.
static std::string library_key(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

// Library options that read or write files, or that duplicate a member. `option`: the option with
// the list.
static bool is_refused_in_library(std::string_view option, std::string_view key) {
  if (key == "film-grain") return option == "x265-params";  // a file there, a number elsewhere
  constexpr auto names = std::to_array<std::string_view>({"pass",
                                                          "stats",
                                                          "cqm",
                                                          "scaling-list",
                                                          "fps",
                                                          "input-res",
                                                          "input-csp",
                                                          "input-depth",
                                                          "timebase",
                                                          "sar",
                                                          "colormatrix",
                                                          "colorprim",
                                                          "transfer",
                                                          "fullrange",
                                                          "range",
                                                          "width",
                                                          "height",
                                                          "keyint",
                                                          "bframes",
                                                          "tbr",
                                                          "crf",
                                                          "dhdr10-info",
                                                          "film-grain-table",

                                                          "fgs-table",
                                                          "roi"});
  constexpr auto parts = std::to_array<std::string_view>(
      {"bitrate", "csv", "dump", "recon", "analysis-", "clbin", "opencl", "multi-pass"});
  return names_file(key) || std::find(names.begin(), names.end(), key) != names.end() ||
         std::any_of(parts.begin(), parts.end(),
                     [&](auto each) { return key.find(each) != key.npos; });
}

[[noreturn]] static void refuse_with_member(const std::string& option, const char* member,
                                            std::string_view doing) {
  refuse_option(option, std::string("is set beside the member ") + member, doing);
}

static void check_nested(std::string_view option, const char* value, const rate_members& members,
                         std::string_view doing) {
  const std::string text(value);
  for (std::size_t first = 0; first <= text.size();) {
    const auto end = std::min(text.find(':', first), text.size());
    const auto one = text.substr(first, end - first);
    const auto plain = plain_key(one.substr(0, one.find('=')));
    const auto key = library_key(plain);
    const auto name = fmt::format("{} {}", option, plain);
    if (is_refused_in_library(option, key))
      refuse_option(name, "is refused: it opens a file, or states what a member states", doing);
    const auto is = one.find('=');
    const auto set = is == one.npos ? std::string() : plain_key(one.substr(is + 1));
    if (const char* member = overridden_in_library(key, set, members))
      refuse_with_member(name, member, doing);
    first = end + 1;
  }
}

void check_encoder_options(const AVCodec& encoder, const AVDictionary* options,
                           const rate_members& members, std::string_view doing) {
  const AVDictionaryEntry* entry = nullptr;
  while ((entry = av_dict_get(options, "", entry, AV_DICT_IGNORE_SUFFIX)) != nullptr) {
    const std::string_view key = entry->key;
    if (const char* member = member_of_option(key))
      refuse_option(key, fmt::format("states what the member {} states", member), doing);
    if (is_of_encoder(key)) refuse_option(key, "is set by the encoder", doing);
    if (names_file(key)) refuse_option(key, "names a file, which encoders do not open", doing);
    if (key == "flags") check_flags(encoder, entry->value, doing);
    if (is_nested(key)) check_nested(key, entry->value, members, doing);
    if (const char* member = overridden_member(encoder, *entry, members))
      refuse_with_member(entry->key, member, doing);
  }
}

void silence_library(const AVCodec& encoder, AVDictionary*& options) {
  constexpr const char* key = "x265-params";
  if (std::string_view(encoder.name) != "libx265") return;
  const auto* entry = av_dict_get(options, key, nullptr, 0);
  std::string value = "log-level=none";
  if (entry != nullptr) value.append(":").append(entry->value);
  check_av(av_dict_set(&options, key, value.c_str(), 0), "set options of libx265");
}

void refuse_ignored_options(const av_messages& messages, std::string_view doing) {
  constexpr auto beginnings = std::to_array<std::string_view>(
      {"Error parsing option", "Unknown option", "Invalid value for", "Error setting option"});
  for (const auto& each : messages.warnings())
    if (std::any_of(beginnings.begin(), beginnings.end(),
                    [&](auto text) { return each.starts_with(text); }))
      throw error(errc::invalid_argument, doing, each);
}

std::string stated_format(const AVCodecContext& context) {
  std::array<char, 128> layout{};
  av_channel_layout_describe(&context.ch_layout, layout.data(), layout.size());
  std::string text = layout.data();
  for (const int each :
       {context.width, context.height, static_cast<int>(context.pix_fmt), context.sample_rate,
        static_cast<int>(context.sample_fmt), context.time_base.num, context.time_base.den})
    text += fmt::format(" {}", each);
  return text;
}

}  // namespace lade::media
