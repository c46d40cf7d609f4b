// The kernel that changes the layout and the element type of images. A thread writes one pixel.

#pragma once

#include "element_codes.hpp"
#include "grid_code.hpp"

#include <cstdint>

#include "grid_mark.hpp"

namespace lade::cuda {

// Contiguous images: [images, pixels, channels], or [images, channels, pixels] if planar.
struct layout_change {
  static constexpr unsigned threads = 256;
  static constexpr unsigned most_rows_of_blocks = 65535;

  const void* from = nullptr;
  void* to = nullptr;
  std::int64_t images = 0;
  std::int64_t pixels = 0;
  std::int64_t channels = 0;
  element_code from_code = element_code::u8;
  element_code to_code = element_code::u8;
  bool from_planar = false;
  bool to_planar = false;
};

template <element_code From, element_code To>
LADE_GRID_CODE element_of<To> changed(element_of<From> value) {
  if constexpr (From == To)
    return value;
  else
    return element<To>::of(element<From>::value(value));
}

// The kernel for one pair of element types.
template <element_code From, element_code To>
struct layout_kind {
  LADE_GRID_CODE static void change_pixel(const layout_change& change, std::int64_t image,
                                          std::int64_t pixel) {
    const auto first = image * change.pixels * change.channels;
    const auto* in = static_cast<const element_of<From>*>(change.from) + first +
                     pixel * (change.from_planar ? 1 : change.channels);
    auto* out = static_cast<element_of<To>*>(change.to) + first +
                pixel * (change.to_planar ? 1 : change.channels);
    const auto in_step = change.from_planar ? change.pixels : 1;
    const auto out_step = change.to_planar ? change.pixels : 1;
    for (std::int64_t c = 0; c < change.channels; ++c)
      out[c * out_step] = changed<From, To>(in[c * in_step]);
  }

  // The work of one thread. Block (x, y) has pixels of image y and of every `rows_of_blocks`-th
  // image after it.
  LADE_GRID_CODE static void run(const layout_change& change, const grid_block& block, int thread,
                                 unsigned rows_of_blocks) {
    const auto pixel = std::int64_t{block.x} * layout_change::threads + thread;
    if (pixel >= change.pixels) return;
    for (std::int64_t image = block.y; image < change.images; image += rows_of_blocks)
      change_pixel(change, image, pixel);
  }
};

template <element_code From, class Use>
void use_layout_kind(const layout_change& change, Use use) {
  switch (change.to_code) {
    case element_code::u8: return use(layout_kind<From, element_code::u8>());
    case element_code::f16: return use(layout_kind<From, element_code::f16>());
    case element_code::bf16: return use(layout_kind<From, element_code::bf16>());
    case element_code::f32: return use(layout_kind<From, element_code::f32>());
  }
}

// Calls `use` with the layout_kind of a change.
template <class Use>
void use_layout_kind(const layout_change& change, Use use) {
  switch (change.from_code) {
    case element_code::u8: return use_layout_kind<element_code::u8>(change, use);
    case element_code::f16: return use_layout_kind<element_code::f16>(change, use);
    case element_code::bf16: return use_layout_kind<element_code::bf16>(change, use);
    case element_code::f32: return use_layout_kind<element_code::f32>(change, use);
  }
}

inline grid_shape grid_of(const layout_change& change) {
  const auto rows = smaller(change.images, std::int64_t{layout_change::most_rows_of_blocks});
  return {static_cast<unsigned>(divided_up(change.pixels, layout_change::threads)),
          static_cast<unsigned>(rows), 1, layout_change::threads, 0};
}

}  // namespace lade::cuda

#undef LADE_GRID_CODE
