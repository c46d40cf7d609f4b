// Surfaces copied to the host, to be compared with frames of the CPU.

#pragma once

#include "../../../cuda/runtime_api.hpp"

#include <lade/cuda/nvdec/surfaces.hpp>
#include <lade/media/av/frame.hpp>

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

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

// The samples of a planar frame of the CPU.
inline host_picture picture_of_frame(const media::frame& of) {
  const auto& frame = of.get();
  const auto* format = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  host_picture result{frame.width, frame.height, {}};
  for (int c = 0; c < 3; ++c) {
    const int w = c > 0 ? -(-frame.width >> format->log2_chroma_w) : frame.width;
    const int h = c > 0 ? -(-frame.height >> format->log2_chroma_h) : frame.height;
    const std::size_t bytes = format->comp[0].depth > 8 ? 2 : 1;
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x) {
        std::uint16_t sample = 0;
        std::memcpy(&sample,
                    frame.data[c] + std::ptrdiff_t{y} * frame.linesize[c] +
                        static_cast<std::size_t>(x) * bytes,
                    bytes);
        result.samples.push_back(sample);
      }
  }
  return result;
}

}  // namespace lade::cuda
