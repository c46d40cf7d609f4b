// The bare loop's threads with lade's own decoder, each of which decodes two images at once.

#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "../../media/quick_jpeg.hpp"
#include "bare_images.hpp"
#include "batch_pair.hpp"

namespace bench {

// As the bare loop is compiled.
inline lade::media::simd bare_simd() {
  constexpr std::string_view name = instruction_set;
  if (name == "plain") return lade::media::simd::plain;
  return name == "avx2" ? lade::media::simd::avx2 : lade::media::best_simd();
}

// What a thread keeps from image to image. While the rows of one image are resized, the other is
// decoded along with it.
class quick_worker {
 public:
  explicit quick_worker(const image_settings& with) : with_(with), out_(with) {
    if (with.what == transform::decode) fail("--transform decode is for libjpeg-turbo");
  }

  // An image's place in the batch is asked for when its turn comes: a thread that waits for a place
  // holds no earlier image.
  void work(image_queue& queue, batch_pair& batches) {
    auto *now = &images_[0], *next = &images_[1];
    bool more = start(*now, queue), other = start(*next, queue);
    while (more) {
      if (other) now->jpeg.interleave_with([next] { return &next->jpeg; });
      resize(*now, batches.slot(now->index));
      now->jpeg.close();
      batches.filled(now->index);
      more = start(*now, queue);
      if (!other) continue;
      std::swap(now, next);
      std::swap(more, other);
    }
  }

 private:
  struct image {
    lade::media::quick_jpeg jpeg{bare_simd()};
    file_bytes file;
    std::size_t index = 0;
    bool as_planes = false;
    axis across, down, chroma_across, chroma_down;
  };

  // False if no image is left.
  bool start(image& next, image_queue& queue) {
    if (!queue.take(next.index)) return false;
    auto& jpeg = next.jpeg;
    auto bytes = std::as_bytes(next.file.read(queue.path(next.index)));
    const lade::media::image_file file{.bytes = bytes, .doing = "decode", .max_pixels = 1 << 28};
    if (!jpeg.open(file, tables_) || jpeg.is_grey() || jpeg.is_rgb())
      fail("an image is not for lade's own decoder");
    view from = view_of(with_, jpeg.width(), jpeg.height(), next.index);
    from.across.set(next.across, from.mirrored);
    from.down.set(next.down, false);
    auto wanted = part_of(next.across, next.down, 1);
    next.as_planes =
        with_.fast && jpeg.columns(1).step == 2 && jpeg.rows(1, jpeg.height()).step == 2;
    if (next.as_planes) {
      from.across.halved((jpeg.width() + 1) / 2).set(next.chroma_across, from.mirrored);
      from.down.halved((jpeg.height() + 1) / 2).set(next.chroma_down, false);
      wanted = hull(wanted, part_of(next.chroma_across, next.chroma_down, 2));
    }
    jpeg.begin(wanted, 2);
    return true;
  }

  static lade::media::jpeg_part part_of(const axis& across, const axis& down, int step) {
    return {across.begin() * step, down.begin() * step, across.end() * step, down.end() * step};
  }

  static lade::media::jpeg_part hull(const lade::media::jpeg_part& a,
                                     const lade::media::jpeg_part& b) {
    return {std::min(a.left, b.left), std::min(a.top, b.top), std::max(a.right, b.right),
            std::max(a.bottom, b.bottom)};
  }

  void resize(image& from, std::byte* slot) {
    if (from.as_planes)
      from_planes(from, slot);
    else
      from_colours(from, slot);
    flush_floats();
  }

  void from_colours(image& from, std::byte* slot) {
    from.jpeg.start_colours(1);
    int left = from.across.begin(), next = from.down.begin();
    for (auto& colour : resizers_) colour.begin(from.across, from.down, 1, left, next);
    std::array<const std::uint8_t*, 3> colours{rows_[0].data(), rows_[1].data(), rows_[2].data()};
    for (int row = 0; row < size; ++row) {
      for (; !resizers_[2].ready(); ++next)
        for (std::size_t c = 0; c < 3; ++c) resizers_[c].put(from.jpeg.colour_row(c, next));
      for (std::size_t c = 0; c < 3; ++c) resizers_[c].take<20>(rows_[c].data());
      out_.finish_colours(colours, slot, row);
    }
  }

  void from_planes(image& from, std::byte* slot) {
    int next = from.down.begin(), next_chroma = from.chroma_down.begin();
    auto& [y, u, v] = resizers_;
    y.begin(from.across, from.down, 1, 0, next);
    for (auto* chroma : {&u, &v})
      chroma->begin(from.chroma_across, from.chroma_down, 1, 0, next_chroma);
    for (int row = 0; row < size; ++row) {
      for (; !y.ready(); ++next) y.put(from.jpeg.component_row(0, next));
      for (; !v.ready(); ++next_chroma) {
        u.put(from.jpeg.component_row(1, next_chroma));
        v.put(from.jpeg.component_row(2, next_chroma));
      }
      finish_yuv_row(slot, row);
    }
  }

  void finish_yuv_row(std::byte* slot, int row) {
    std::uint8_t* out = out_.rgb_row(slot, row);
    for (std::size_t c = 0; c < 3; ++c) resizers_[c].take<16>(yuv_[c].data());
    yuv_to_rgb(yuv_[0].data(), yuv_[1].data(), yuv_[2].data(), out, size);
    out_.finish_rgb(out, slot, row);
  }

  image_settings with_;
  image_rows out_;
  lade::media::jpeg_table_cache tables_;
  std::array<image, 2> images_;
  std::array<row_resizer, 3> resizers_;  // of red, green and blue, or Y, Cb and Cr
  std::array<std::array<std::uint8_t, size + row_slack>, 3> rows_;
  std::array<std::array<std::int16_t, size + row_slack>, 3> yuv_;
};

}  // namespace bench
