// The kernel that converts 8-bit images without resizing: it crops, mirrors and scales, and
// separates channels into planes.
//
// A thread writes a group of neighbouring pixels: 16 bytes of elements per channel. If the rows of
// the target are not whole groups at addresses that are multiples of 16, it writes one pixel.

#pragma once

#include "element_codes.hpp"
#include "grid_code.hpp"

#include <cstddef>
#include <cstdint>

#include "grid_mark.hpp"

namespace lade::cuda {

// The part of an image that becomes a result: its first pixel, and the bytes between rows.
struct convert_source {
  const unsigned char* data = nullptr;
  std::int64_t pitch = 0;
  std::int32_t slot = 0;  // the position of the result in its batch
  bool mirrored = false;
};

// The result: [slots, height, width, channels], or [slots, channels, height, width].
struct convert_target {
  void* data = nullptr;
  std::int64_t width = 0;  // an image with contiguous rows is one long row
  std::int32_t height = 0;
  std::uint8_t channels = 3;  // as the source, or 3
  element_code code = element_code::u8;
  bool planar = false;
  bool bgr = false;
  channel_scaling scaling;  // in the order of the target's channels
};

// The parameters of one launch. They are limited to 4 KiB.
struct convert_batch {
  static constexpr int most_sources = 160;

  convert_target target;
  std::int32_t count = 0;
  std::int32_t channels = 3;   // of all sources: 1 or 3
  std::int32_t lane_bits = 0;  // 2^lane_bits threads of a block share a row
  bool grouped = false;        // a thread writes a group, not a pixel
  convert_source sources[most_sources];
};
static_assert(sizeof(convert_batch) <= 4096);

constexpr int convert_threads = 256;

template <element_code Code>
constexpr int group_pixels = 16 / static_cast<int>(sizeof(element_of<Code>));

// Neighbouring elements, stored at once.
template <class T, int Count>
struct alignas(Count * sizeof(T)) element_group {
  T at[Count];
};

// The channels of neighbouring pixels.
template <int Pixels, int Channels>
struct pixel_group {
  unsigned char at[Pixels * Channels];
};

// Reads the words of a group at any address, and up to three bytes before and after it.
template <int Words>
LADE_GRID_CODE void load_words(const unsigned char* from, std::uint32_t* to) {
  const auto behind = behind_word(from);
  auto lower = load_aligned<std::uint32_t>(from - behind);
  for (int i = 0; i < Words; ++i) {
    const auto upper = load_aligned<std::uint32_t>(from - behind + 4 * (i + 1));
    to[i] = word_across(lower, upper, behind);
    lower = upper;
  }
}

// Reads the group from byte `first` of a row of `bytes` bytes, and nothing outside of the row.
template <int Words>
LADE_GRID_CODE void load_words(const unsigned char* row, std::int64_t first, std::int64_t bytes,
                               std::uint32_t* to) {
  const auto* from = row + first;
  if (behind_word(from) == 0)
    for (int i = 0; i < Words; ++i) to[i] = load_aligned<std::uint32_t>(from + 4 * i);
  else if (first >= 4 && first + 4 * Words + 4 <= bytes)
    load_words<Words>(from, to);
  else
    for (int i = 0; i < Words; ++i) to[i] = load_bytes(from + 4 * i, 4);
}

template <int Bytes>
LADE_GRID_CODE void load_group(const unsigned char* row, std::int64_t first, std::int64_t bytes,
                               unsigned char* to) {
  if constexpr (Bytes % 4 == 0) {
    std::uint32_t words[Bytes / 4];
    load_words<Bytes / 4>(row, first, bytes, words);
    for (int i = 0; i < Bytes; ++i)
      to[i] = static_cast<unsigned char>(byte_in(words[i / 4], i % 4));
  } else {
    for (int i = 0; i < Bytes; ++i) to[i] = row[first + i];
  }
}

LADE_GRID_CODE void exchange(unsigned char& a, unsigned char& b) {
  const auto kept = a;
  a = b;
  b = kept;
}

template <int Pixels, int Channels>
LADE_GRID_CODE void mirror(pixel_group<Pixels, Channels>& group) {
  for (int p = 0; p < Pixels / 2; ++p)
    for (int c = 0; c < Channels; ++c)
      exchange(group.at[p * Channels + c], group.at[(Pixels - 1 - p) * Channels + c]);
}

template <int Pixels, int Channels>
LADE_GRID_CODE void exchange_red_and_blue(pixel_group<Pixels, Channels>& group) {
  if constexpr (Channels == 3)
    for (int p = 0; p < Pixels; ++p) exchange(group.at[3 * p], group.at[3 * p + 2]);
}

// Element i of a part of a group. In planar layout, a part is a plane; else parts are successive
// interleaved elements.
template <element_code Code, bool Planar, int Pixels, int Channels, int TargetChannels>
LADE_GRID_CODE element_of<Code> group_element(const pixel_group<Pixels, Channels>& group,
                                              const channel_scaling& by, int part, int i) {
  const int interleaved = part * Pixels + i;
  const int pixel = Planar ? i : interleaved / TargetChannels;
  const int channel = Planar ? part : interleaved % TargetChannels;
  return scaled<Code>(group.at[pixel * Channels + channel % Channels], by, channel);
}

// Writes a group from pixel `first` of an image on: a part of each plane, or whole pixels. Grey is
// written to each channel of the target.
template <element_code Code, bool Planar, int Pixels, int Channels, int TargetChannels>
LADE_GRID_CODE void store_group(const pixel_group<Pixels, Channels>& group,
                                const convert_target& to, element_of<Code>* image,
                                std::int64_t first) {
  auto* out = image + (Planar ? first : first * TargetChannels);
  for (int part = 0; part < TargetChannels; ++part) {
    element_group<element_of<Code>, Pixels> elements;
    for (int i = 0; i < Pixels; ++i)
      elements.at[i] =
          group_element<Code, Planar, Pixels, Channels, TargetChannels>(group, to.scaling, part, i);
    store_aligned(out, elements);
    out += Planar ? to.width * to.height : Pixels;
  }
}

// The kernel for a number of pixels per thread, and of channels of sources and targets.
template <element_code Code, int Pixels, int Channels, int TargetChannels>
struct convert_kind {
  static constexpr int pixels = Pixels;

  // The work of one thread.
  LADE_GRID_CODE static void run(const convert_batch& batch, const grid_block& block, int thread) {
    const auto& to = batch.target;
    const auto& from = batch.sources[block.z];
    const int lanes = 1 << batch.lane_bits;
    const auto x = (std::int64_t{block.x} * lanes + (thread & (lanes - 1))) * Pixels;
    const int y = static_cast<int>(block.y) * (convert_threads >> batch.lane_bits) +
                  (thread >> batch.lane_bits);
    if (x >= to.width || y >= to.height) return;
    const auto left = from.mirrored ? to.width - x - Pixels : x;
    pixel_group<Pixels, Channels> group;
    load_group<Pixels * Channels>(from.data + y * from.pitch, left * Channels, to.width * Channels,
                                  group.at);
    if (from.mirrored) mirror(group);
    if (to.bgr) exchange_red_and_blue(group);
    auto* image = static_cast<element_of<Code>*>(to.data) +
                  from.slot * (to.width * to.height * TargetChannels);
    const auto first = y * to.width + x;
    if (to.planar)
      store_group<Code, true, Pixels, Channels, TargetChannels>(group, to, image, first);
    else
      store_group<Code, false, Pixels, Channels, TargetChannels>(group, to, image, first);
  }
};

template <element_code Code, int Pixels, class Use>
void use_convert_kind(const convert_batch& batch, Use use) {
  if (batch.channels == 3)
    use(convert_kind<Code, Pixels, 3, 3>());
  else if (batch.target.channels == 3)
    use(convert_kind<Code, Pixels, 1, 3>());
  else
    use(convert_kind<Code, Pixels, 1, 1>());
}

template <element_code Code, class Use>
void use_convert_kind(const convert_batch& batch, Use use) {
  if (batch.grouped)
    use_convert_kind<Code, group_pixels<Code>>(batch, use);
  else
    use_convert_kind<Code, 1>(batch, use);
}

// Calls `use` with the convert_kind of a batch.
template <class Use>
void use_convert_kind(const convert_batch& batch, Use use) {
  switch (batch.target.code) {
    case element_code::u8: return use_convert_kind<element_code::u8>(batch, use);
    case element_code::f16: return use_convert_kind<element_code::f16>(batch, use);
    case element_code::bf16: return use_convert_kind<element_code::bf16>(batch, use);
    case element_code::f32: return use_convert_kind<element_code::f32>(batch, use);
  }
}

inline grid_shape grid_of(const convert_batch& batch, int pixels) {
  const auto groups = divided_up(batch.target.width, pixels);
  const int rows = convert_threads >> batch.lane_bits;  // of a block
  return {static_cast<unsigned>(divided_up(groups, 1 << batch.lane_bits)),
          static_cast<unsigned>(divided_up(batch.target.height, rows)),
          static_cast<unsigned>(batch.count), convert_threads, 0};
}

}  // namespace lade::cuda

#undef LADE_GRID_CODE
