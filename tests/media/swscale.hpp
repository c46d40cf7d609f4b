// FFmpeg's swscale as an oracle, by the command line of ffmpeg.

#pragma once

#include "pillow.hpp"
#include "raw_pictures.hpp"

#include <lade/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lade::media {

inline bool have_ffmpeg() { return std::system("command -v ffmpeg > /dev/null") == 0; }

// FFmpeg's name for the format of a picture's samples.
inline std::string pixel_format_of(const picture& of) {
  const std::string depth = of.bits > 8 ? std::to_string(of.bits) + "le" : "";
  const bool half_height = of.chroma_shift_y == 1;
  switch (of.layout) {
    case plane_layout::grey: return "gray" + depth;
    case plane_layout::g_b_r: return "gbrp" + depth;
    case plane_layout::rgb: return "rgb24";
    case plane_layout::bgr: return "bgr24";
    case plane_layout::rgba: return "rgba";
    case plane_layout::bgra: return "bgra";
    case plane_layout::y_crcb: return "nv21";
    case plane_layout::y_cbcr:
      return of.bits > 8 ? (half_height ? "p0" : "p2") + depth : half_height ? "nv12" : "nv16";
    case plane_layout::g_b_r_a: return "gbrap" + depth;
    case plane_layout::y_cb_cr:
    case plane_layout::y_cb_cr_a: break;
  }
  static const std::map<std::pair<int, int>, std::string> names{{{0, 0}, "444"}, {{1, 0}, "422"},
                                                                {{1, 1}, "420"}, {{0, 1}, "440"},
                                                                {{2, 0}, "411"}, {{2, 2}, "410"}};
  const std::string planes = of.layout == plane_layout::y_cb_cr_a ? "yuva" : "yuv";
  return planes + names.at({of.chroma_shift_x, of.chroma_shift_y}) + "p" + depth;
}

// The same with the siting, as the name of a test.
inline std::string name_of_kind(const picture& kind) {
  const std::string site = kind.siting.x == chroma_site::middle  ? "_centre"
                           : kind.siting.y == chroma_site::first ? "_top_left"
                                                                 : "";
  return pixel_format_of(kind) + site;
}

// The exact conversion. swscale's positions of chroma are in 1/256 of a luma sample; by default it
// takes 4:2:0 for centre_siting, whatever the video says.
inline std::string swscale_options(const picture& of) {
  const std::string matrix = of.matrix == colour_matrix::bt601   ? "bt601"
                             : of.matrix == colour_matrix::bt709 ? "bt709"
                                                                 : "bt2020";
  const auto position = [](chroma_site site, int shift) {
    if (shift == 0) return std::string("-513");
    return std::to_string(site == chroma_site::first ? 0 : (128 << shift) - 128);
  };
  return "in_color_matrix=" + matrix + ":in_range=" + (of.full_range ? "full" : "limited") +
         ":out_range=full:in_h_chr_pos=" + position(of.siting.x, of.chroma_shift_x) +
         ":in_v_chr_pos=" + position(of.siting.y, of.chroma_shift_y) +
         ":flags=bilinear+accurate_rnd+full_chroma_int+full_chroma_inp";
}

inline tensor interleaved_gbr(const std::vector<std::uint8_t>& planes, int width, int height) {
  tensor pixels(element_type::u8, {height, width, 3});
  auto* out = pixels.data<std::uint8_t>();
  const auto count = std::size_t(width) * std::size_t(height);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t c = 0; c < 3; ++c) out[3 * i + c] = planes[(c + 2) % 3 * count + i];
  return pixels;
}

// The picture as RGB of its own size. Planes are asked for: of packed pixels, swscale takes chroma
// rows as they are, or the mean of two, where the height stays the same.
inline tensor swscale(const raw_picture& from) {
  const temporary_directory directory;
  const auto path = directory.path() / "raw";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(from.bytes().data()),
             static_cast<std::streamsize>(from.bytes().size()));
  const auto& what = from.get();
  const auto size = std::to_string(what.width) + "x" + std::to_string(what.height);
  const auto line = "ffmpeg -v error -f rawvideo -pixel_format " + pixel_format_of(what) +
                    " -video_size " + size + " -i " + path.string() +
                    " -vf scale=" + swscale_options(what) +
                    " -f rawvideo -pix_fmt gbrp - < /dev/null";
  std::FILE* output = popen(line.c_str(), "r");
  std::vector<std::uint8_t> planes(std::size_t(what.width) * std::size_t(what.height) * 3);
  const auto read = std::fread(planes.data(), 1, planes.size(), output);
  if (pclose(output) != 0 || read != planes.size()) throw std::runtime_error("failed: " + line);
  return interleaved_gbr(planes, what.width, what.height);
}

}  // namespace lade::media
