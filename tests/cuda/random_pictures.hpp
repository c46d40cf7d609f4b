// Pictures of random samples, for tests of kernels.

#pragma once

#include "kernel_fixture.hpp"

#include <lade/cuda/write_pictures.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace lade::cuda {

// A picture with separate memory for each plane.
struct random_picture {
  std::array<std::vector<unsigned char>, 3> bytes;
  std::array<std::unique_ptr<kernel_memory>, 3> memory;
  yuv_picture source;

  bool interleaved() const { return source.layout != yuv_layout::y_cb_cr; }
  int plane_width(int plane) const {
    const int step = plane == 0 ? 1 : 1 << source.chroma_shift_x;
    return (source.width + step - 1) / step;
  }
  int plane_height(int plane) const {
    const int step = plane == 0 ? 1 : 1 << source.chroma_shift_y;
    return (source.height + step - 1) / step;
  }

  // The code of Y, Cb or Cr (component 0 to 2) at a place of its plane.
  int code(int x, int y, int component) const {
    const bool second = source.layout == yuv_layout::y_crcb ? component == 1 : component == 2;
    const int plane = interleaved() ? std::min(component, 1) : component;
    const int index = interleaved() && component > 0 ? 2 * x + second : x;
    const auto& from = bytes[std::size_t(plane)];
    const auto row = std::size_t(y) * std::size_t(source.planes[std::size_t(plane)].pitch);
    if (source.bits == 8) return from[row + std::size_t(index)];
    const auto at = row + 2 * std::size_t(index);
    const int word = from[at] | from[at + 1] << 8;
    return (word >> source.shift) & ((1 << source.bits) - 1);
  }
};

class picture_test : public kernel_test {
 protected:
  bool reserved_codes = false;

  yuv_picture any_kind() {
    static constexpr int shifts[][2]{{0, 0}, {1, 0}, {1, 1}, {0, 1}, {2, 0}, {2, 2}};
    const auto& shift = shifts[below(6)];
    yuv_picture kind{.layout = static_cast<yuv_layout>(below(3)),
                     .bits = maybe() ? 8 : 9 + below(8),
                     .chroma_shift_x = shift[0],
                     .chroma_shift_y = shift[1],
                     .siting = static_cast<yuv_siting>(below(3)),
                     .matrix = static_cast<yuv_matrix>(below(3)),
                     .full_range = maybe(),
                     .flip = maybe()};
    if (kind.bits > 8) kind.shift = below(17 - kind.bits);
    return kind;
  }

  // Of a kind. Bits of words that are not significant are 0.
  random_picture any_picture(const yuv_picture& kind, int width, int height) {
    random_picture result;
    result.source = kind;
    result.source.width = width;
    result.source.height = height;
    for (int p = 0; p < (result.interleaved() ? 2 : 3); ++p) fill_plane(result, p);
    return result;
  }

 private:
  void fill_plane(random_picture& picture, int p) {
    const auto plane = std::size_t(p);
    const auto& source = picture.source;
    const int bytes = source.bits > 8 ? 2 : 1;
    const int channels = p > 0 && picture.interleaved() ? 2 : 1;
    const auto row = std::size_t(picture.plane_width(p) * channels * bytes);
    const auto pitch = row + std::size_t(bytes * below(2) * below(20));
    auto& memory = picture.bytes[plane];
    memory = any_bytes(pitch * std::size_t(picture.plane_height(p) - 1) + row);
    if (bytes == 2) keep_significant(memory, source);
    picture.memory[plane] = memory_of(memory, std::size_t(bytes * below(2) * below(8)), maybe());
    picture.source.planes[plane] = {picture.memory[plane]->data(),
                                    static_cast<std::int64_t>(pitch)};
  }

  // Codes of limited range are none of those above 255 in 8 bits, which the standards reserve,
  // unless `reserved_codes` is set.
  void keep_significant(std::vector<unsigned char>& words, const yuv_picture& kind) const {
    const int all = (1 << kind.bits) - 1;
    const int most = kind.full_range || reserved_codes ? all : 255 << (kind.bits - 8);
    for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
      const int code = std::min((words[i] | words[i + 1] << 8) & all, most) << kind.shift;
      words[i] = static_cast<unsigned char>(code);
      words[i + 1] = static_cast<unsigned char>(code >> 8);
    }
  }
};

}  // namespace lade::cuda
