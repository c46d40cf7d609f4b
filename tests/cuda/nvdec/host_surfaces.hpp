// Surfaces copied to the host, to be compared with frames of the CPU.

#pragma once

#include "../../../cuda/runtime_api.hpp"

#include <lade/cuda/nvdec/surfaces.hpp>
#include <lade/media/av/frame.hpp>

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "fake_nvcuvid.hpp"

extern "C" {
#include <libavutil/frame.h>
#include <libavutil/pixdesc.h>
}

namespace lade::cuda {

// The samples of one picture, plane by plane: Y, Cb, Cr, each of 16 bits.
struct host_picture {
  int width = 0;
  int height = 0;
  std::vector<std::uint16_t> samples;

  friend bool operator==(const host_picture&, const host_picture&) = default;
};

// A copy of a surface, which the stream makes. The samples are complete when the stream has passed.
class surface_copy {
 public:
  surface_copy(const surface& from, const stream& on) : from_(from) {
    const std::size_t bytes = from.bits > 8 ? 2 : 1;
    const int planes = from.chroma == 444 ? 3 : 2;
    for (int i = 0; i < planes; ++i) {
      const bool chroma = i > 0 && planes == 2;
      const int rows = chroma ? (from.height + 1) / 2 : from.height;
      const auto columns = static_cast<std::size_t>(chroma ? (from.width + 1) / 2 * 2 : from.width);
      auto& plane = planes_.emplace_back(static_cast<std::size_t>(rows) * columns * bytes);
      for (int y = 0; y < rows; ++y) {
        const auto* row = static_cast<const std::byte*>(from.planes[static_cast<std::size_t>(i)]) +
                          y * from.pitch;
        auto* to = plane.data() + static_cast<std::size_t>(y) * columns * bytes;
        (void)api().memcpy_async(to, row, columns * bytes, cudaMemcpyDeviceToHost, on.handle());
      }
    }
  }

  host_picture picture() const {
    host_picture result{from_.width, from_.height, {}};
    const auto add = [&](std::size_t plane, std::size_t first, std::size_t step) {
      const std::size_t bytes = from_.bits > 8 ? 2 : 1;
      for (auto at = first * bytes; at < planes_[plane].size(); at += step * bytes) {
        std::uint16_t sample = 0;
        std::memcpy(&sample, planes_[plane].data() + at, bytes);
        if (bytes == 2) sample = static_cast<std::uint16_t>(sample >> (16 - from_.bits));
        result.samples.push_back(sample);
      }
    };
    add(0, 0, 1);
    if (from_.chroma == 444) {
      add(1, 0, 1);
      add(2, 0, 1);
    } else {
      add(1, 0, 2);
      add(1, 1, 2);
    }
    return result;
  }

 private:
  surface from_;
  std::vector<std::vector<std::byte>> planes_;
};

// The samples of a part of a planar frame of the CPU, resized as fake_nvcuvid does.
inline host_picture picture_of_frame(const media::frame& of, const surface_region& part, int width,
                                     int height) {
  const auto& frame = of.get();
  const auto* format = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  const std::size_t bytes = format->comp[0].depth > 8 ? 2 : 1;
  host_picture result{width, height, {}};
  for (int c = 0; c < 3; ++c) {
    const int across = c > 0 ? format->log2_chroma_w : 0;
    const int down = c > 0 ? format->log2_chroma_h : 0;
    const auto source = [](int i, int begin, int from, int to, int shift) {
      return (begin >> shift) + fake_nvcuvid::nearest(i, -(-from >> shift), -(-to >> shift));
    };
    for (int y = 0; y < -(-height >> down); ++y)
      for (int x = 0; x < -(-width >> across); ++x) {
        const auto row = std::ptrdiff_t{source(y, part.top, part.height, height, down)};
        const auto column = std::ptrdiff_t{source(x, part.left, part.width, width, across)};
        std::uint16_t sample = 0;
        std::memcpy(
            &sample,
            frame.data[c] + row * frame.linesize[c] + column * static_cast<std::ptrdiff_t>(bytes),
            bytes);
        result.samples.push_back(sample);
      }
  }
  return result;
}

// All samples of it.
inline host_picture picture_of_frame(const media::frame& of) {
  const int width = of.get().width;
  const int height = of.get().height;
  return picture_of_frame(of, {.width = width, .height = height}, width, height);
}

}  // namespace lade::cuda
