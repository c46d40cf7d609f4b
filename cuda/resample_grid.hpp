// The kernel that resizes the pictures of a batch, converts their colours, and writes elements.
//
// A block computes a tile of one picture, a thread one pixel. The threads of a block synchronise
// between the steps:
//
//   plan    computes the weights of the tile's columns and rows, of luma and of chroma, in shared
//           memory
//   blend   the vertical pass of a plane over all source columns of the tile, into shared memory;
//           as many rows of the tile at a time as fit
//   filter  the horizontal pass, from shared memory into the thread's values
//   write   colours, scaling, and the elements of the pixel
//
// Everything except weights and scaling is integer arithmetic, with the operations and roundings of
// the CPU's resize in the module `media`. So the results are equal.

#pragma once

#include "axis_samples.hpp"
#include "element_codes.hpp"
#include "grid_code.hpp"
#include "yuv_conversion.hpp"

#include <cstddef>
#include <cstdint>

#include "grid_mark.hpp"

namespace lade::cuda {

// A plane of samples in device memory: its first sample, and the bytes between rows.
struct resample_plane {
  const unsigned char* data = nullptr;
  std::int64_t pitch = 0;
};

// The conversion of samples of more than 8 bits to 8-bit samples with fractional bits. The upper 8
// bits are the integer part. Then the distance from `centre` is increased by `gain`, in multiples
// of 2^-15.
struct wide_code {
  std::int16_t centre = 0;
  std::int16_t gain = 0;
};

// One picture. Interleaved pixels are one plane; Y, Cb and Cr two planes or three.
struct resample_source {
  resample_plane planes[3];
  axis_part x;
  axis_part y;
  std::int32_t width = 0;
  std::int32_t height = 0;
  std::int32_t slot = 0;  // the position of the result in its batch
  yuv_conversion conversion;
  wide_code wide[2];          // of luma, and of chroma
  std::uint8_t channels = 1;  // interleaved in plane 0
  std::uint8_t chroma_planes = 0;
  std::uint8_t chroma_shift_x = 0;  // one chroma sample per 2^shift luma samples
  std::uint8_t chroma_shift_y = 0;
  std::int8_t site_x = 0;  // -1, 0, 1: chroma lies on the first, in the middle, on the last
  std::int8_t site_y = 0;
  std::uint8_t unused_bits = 0;  // above the significant ones of a 16-bit sample
  bool mirrored = false;
  bool cr_first = false;  // plane 1 interleaves Cr and Cb
};

// The result: [slots, height, width, channels], or [slots, channels, height, width].
struct resample_target {
  void* data = nullptr;
  std::int32_t width = 0;
  std::int32_t height = 0;
  std::uint8_t channels = 3;  // 3, or 1 for sources of one channel
  element_code code = element_code::u8;
  bool planar = false;
  bool bgr = false;
  channel_scaling scaling;  // in the order of the target's channels
};

// The layout of shared memory: `taps` weights for each column and row, and `row` blended samples
// for each of `rows` rows of a tile.
struct resample_layout {
  std::int32_t taps = 0;
  std::int32_t row = 0;
  std::int32_t rows = 1;     // a power of two
  std::int32_t filters = 1;  // 1, or 2 if a source has chroma
};

// The parameters of one launch. They are limited to 4 KiB.
struct resample_batch {
  static constexpr int most_sources = 27;

  resample_target target;
  resample_layout layout;
  std::int32_t sample_bytes = 1;  // of all sources: 1, or 2 for more than 8 bits
  std::int32_t count = 0;
  resample_source sources[most_sources];
};
static_assert(sizeof(resample_batch) <= 4096);

// The tiles of the grid.
struct resample_tile {
  static constexpr int width = 32;
  static constexpr int height = 8;
  static constexpr int threads = width * height;
  static constexpr int outputs = width + height;  // columns, then rows
};

// The shared memory of a block: the samples and the weights of each output of the tile, for luma
// and then for chroma; and the blended rows of a plane.
struct resample_shared {
  sample_taps* taps;
  std::int16_t* weights;
  std::int16_t* blended;
};

constexpr unsigned shared_bytes(const resample_layout& layout) noexcept {
  const int outputs = layout.filters * resample_tile::outputs;
  const int samples = outputs * layout.taps + layout.rows * layout.row;
  return static_cast<unsigned>(outputs * static_cast<int>(sizeof(sample_taps)) +
                               samples * static_cast<int>(sizeof(std::int16_t)));
}

// `memory`: shared_bytes(layout) bytes, aligned for sample_taps.
LADE_GRID_CODE resample_shared shared_in(void* memory, const resample_layout& layout) {
  const int outputs = layout.filters * resample_tile::outputs;
  auto* taps = static_cast<sample_taps*>(memory);
  auto* weights = reinterpret_cast<std::int16_t*>(taps + outputs);
  return {taps, weights, weights + outputs * layout.taps};
}

// The state of a thread between steps.
struct resample_thread {
  std::uint32_t values = 0;  // the channels of its pixel, the first one in the lowest byte
};

// Precision between the passes.
constexpr int blend_bits = 6;
constexpr int most_blended = 255 << blend_bits;

// A plane in one of the steps.
struct plane_view {
  const unsigned char* data;
  std::int64_t pitch;
  std::int32_t width;  // in pixels
  std::int32_t channels;
  std::int32_t first_value;  // index of the first channel in the thread's values
  std::int32_t value_step;   // from there to the next channel
  bool chroma;
};

LADE_GRID_CODE plane_view view_of(const resample_source& from, int plane) {
  const auto& at = from.planes[plane];
  if (plane == 0) return {at.data, at.pitch, from.width, from.channels, 0, 1, false};
  const int width = (from.width + (1 << from.chroma_shift_x) - 1) >> from.chroma_shift_x;
  if (from.chroma_planes == 2) return {at.data, at.pitch, width, 1, plane, 0, true};
  return {at.data, at.pitch, width, 2, from.cr_first ? 2 : 1, from.cr_first ? -1 : 1, true};
}

LADE_GRID_CODE axis_part chroma_part(const axis_part& luma, int shift, int site, int size) {
  const double to_middle = ((1 << shift) - 1) / 2.0;
  return coarser_part(luma, shift, -site * to_middle, (size + (1 << shift) - 1) >> shift);
}

LADE_GRID_CODE axis_filter column_filter(const resample_source& from, const resample_target& to,
                                         bool chroma) {
  const auto part =
      chroma ? chroma_part(from.x, from.chroma_shift_x, from.site_x, from.width) : from.x;
  return filter_of(part, to.width, from.mirrored);
}

LADE_GRID_CODE axis_filter row_filter(const resample_source& from, const resample_target& to,
                                      bool chroma) {
  const auto part =
      chroma ? chroma_part(from.y, from.chroma_shift_y, from.site_y, from.height) : from.y;
  return filter_of(part, to.height, false);
}

LADE_GRID_CODE sample_taps& taps_at(const resample_shared& shared, bool chroma, int output) {
  return shared.taps[chroma * resample_tile::outputs + output];
}
LADE_GRID_CODE std::int16_t* weights_at(const resample_batch& batch, const resample_shared& shared,
                                        bool chroma, int output) {
  return shared.weights + (chroma * resample_tile::outputs + output) * batch.layout.taps;
}

// The columns or rows of a tile inside of the target.
LADE_GRID_CODE int tile_columns(const resample_batch& batch, const grid_block& block) {
  return smaller(resample_tile::width,
                 batch.target.width - static_cast<int>(block.x) * resample_tile::width);
}
LADE_GRID_CODE int tile_rows(const resample_batch& batch, const grid_block& block) {
  return smaller(resample_tile::height,
                 batch.target.height - static_cast<int>(block.y) * resample_tile::height);
}

// Step "plan": thread t plans column or row t of the tile, of luma or of chroma.
LADE_GRID_CODE void plan_output(const resample_batch& batch, const grid_block& block,
                                const resample_shared& shared, int thread) {
  const auto& from = batch.sources[block.z];
  const bool chroma = thread >= resample_tile::outputs;
  const int output = thread - (chroma ? resample_tile::outputs : 0);
  if (output >= resample_tile::outputs || (chroma && from.chroma_planes == 0)) return;
  const bool column = output < resample_tile::width;
  const int index = output - (column ? 0 : resample_tile::width);
  if (index >= (column ? tile_columns(batch, block) : tile_rows(batch, block))) return;
  const auto by =
      column ? column_filter(from, batch.target, chroma) : row_filter(from, batch.target, chroma);
  const int first = column ? static_cast<int>(block.x) * resample_tile::width
                           : static_cast<int>(block.y) * resample_tile::height;
  const auto samples = taps_of(by, first + index);
  auto* weights = weights_at(batch, shared, chroma, output);
  const int used = write_weights(by, first + index, samples, weights);
  taps_at(shared, chroma, output) = {samples.start, used};
}

// The source columns of the tile: from the start of the first output to the end of the last, or in
// reverse if mirrored.
LADE_GRID_CODE sample_taps tile_span(const resample_batch& batch, const grid_block& block,
                                     const resample_shared& shared, bool chroma) {
  const auto& one = taps_at(shared, chroma, 0);
  const auto& other = taps_at(shared, chroma, tile_columns(batch, block) - 1);
  const int begin = smaller(one.start, other.start);
  return {begin, larger(one.start + one.taps, other.start + other.taps) - begin};
}

// The conversion of a plane's samples of more than 8 bits; unused for bytes.
struct sample_code {
  std::int32_t unused_bits;
  wide_code wide;
};

// The weighted sums of one word's samples: four of one byte, or two of two bytes.
template <int SampleBytes>
struct word_blend;

template <>
struct word_blend<1> {
  static constexpr int samples = 4;
  int sums[samples] = {128, 128, 128, 128};

  LADE_GRID_CODE void add(std::uint32_t word, int weight, const sample_code&) {
    for (int i = 0; i < samples; ++i) sums[i] += weight * static_cast<int>(byte_in(word, i));
  }
  LADE_GRID_CODE int value(int i, const sample_code&) const { return sums[i] >> 8; }
};

template <>
struct word_blend<2> {
  static constexpr int samples = 2;
  int sums[samples] = {1 << 15, 1 << 15};

  LADE_GRID_CODE void add(std::uint32_t word, int weight, const sample_code& code) {
    for (int i = 0; i < samples; ++i)
      sums[i] += weight * static_cast<int>((half_in(word, i) << code.unused_bits) & 0xffff);
  }
  LADE_GRID_CODE int value(int i, const sample_code& code) const {
    const int value = sums[i] >> 16;
    const int scaled = value + product_q15(value - code.wide.centre, code.wide.gain);
    return smaller(scaled, most_blended);
  }
};

// Step "blend": rows [first, first + layout.rows) of the tile. Each row has its own group of at
// least 32 threads.
template <int SampleBytes>
LADE_GRID_CODE void blend_rows(const resample_batch& batch, const grid_block& block,
                               const plane_view& plane, int first, const resample_shared& shared,
                               int thread) {
  const int lanes = resample_tile::threads / batch.layout.rows;
  const int row = first + thread / lanes;
  if (row >= tile_rows(batch, block)) return;
  const auto& from = batch.sources[block.z];
  const sample_code code{from.unused_bits, from.wide[plane.chroma]};
  const auto span = tile_span(batch, block, shared, plane.chroma);
  const auto rows = taps_at(shared, plane.chroma, resample_tile::width + row);
  const auto* weights = weights_at(batch, shared, plane.chroma, resample_tile::width + row);
  auto* out = shared.blended + (row - first) * batch.layout.row;
  const int pixel = plane.channels * SampleBytes;
  const auto* line = plane.data + rows.start * plane.pitch + std::int64_t{span.start} * pixel;
  const int left = span.start * pixel;  // bytes of a row before the tile
  const int rest = plane.width * pixel - left;
  for (int at = 4 * (thread % lanes); at < span.taps * pixel; at += 4 * lanes) {
    word_blend<SampleBytes> blend;
    const auto* from_row = line + at;
    if (left + at >= 4 && at + 8 <= rest)
      for (int k = 0; k < rows.taps; ++k, from_row += plane.pitch)
        blend.add(load_word(from_row), weights[k], code);
    else
      for (int k = 0; k < rows.taps; ++k, from_row += plane.pitch)
        blend.add(load_bytes(from_row, rest - at), weights[k], code);
    for (int i = 0; i < blend.samples; ++i)
      out[at / SampleBytes + i] = static_cast<std::int16_t>(blend.value(i, code));
  }
}

// Step "filter": the thread's pixel, if its row is blended.
template <int Channels>
LADE_GRID_CODE void filter_pixel(const resample_batch& batch, const grid_block& block,
                                 const plane_view& plane, int row, int column,
                                 const resample_shared& shared, resample_thread& state) {
  const auto samples = taps_at(shared, plane.chroma, column);
  const auto* weights = weights_at(batch, shared, plane.chroma, column);
  const int first = samples.start - tile_span(batch, block, shared, plane.chroma).start;
  const auto* in = shared.blended + row * batch.layout.row + first * Channels;
  constexpr int shift = axis_filter::weight_bits + blend_bits;
  int sums[Channels];
  for (int c = 0; c < Channels; ++c) sums[c] = 1 << (shift - 1);
  for (int k = 0; k < samples.taps; ++k)
    for (int c = 0; c < Channels; ++c) sums[c] += weights[k] * in[k * Channels + c];
  for (int c = 0; c < Channels; ++c)
    state.values |= static_cast<std::uint32_t>(sums[c] >> shift)
                    << (8 * (plane.first_value + c * plane.value_step));
}

LADE_GRID_CODE void filter_rows(const resample_batch& batch, const grid_block& block,
                                const plane_view& plane, int first, const resample_shared& shared,
                                int thread, resample_thread& state) {
  const int column = thread % resample_tile::width;
  const int row = thread / resample_tile::width - first;
  if (row < 0 || row >= batch.layout.rows || first + row >= tile_rows(batch, block) ||
      column >= tile_columns(batch, block))
    return;
  if (plane.channels == 1)
    filter_pixel<1>(batch, block, plane, row, column, shared, state);
  else if (plane.channels == 2)
    filter_pixel<2>(batch, block, plane, row, column, shared, state);
  else
    filter_pixel<3>(batch, block, plane, row, column, shared, state);
}

template <element_code Code>
LADE_GRID_CODE void write_elements(const resample_target& to, std::int64_t slot, int x, int y,
                                   const unsigned char* values) {
  const auto plane = std::int64_t{to.width} * to.height;
  const auto pixel = std::int64_t{y} * to.width + x;
  auto* out = static_cast<element_of<Code>*>(to.data) + slot * plane * to.channels +
              (to.planar ? pixel : pixel * to.channels);
  const auto step = to.planar ? plane : 1;
  out[0] = scaled<Code>(values[0], to.scaling, 0);
  if (to.channels == 1) return;
  out[step] = scaled<Code>(values[1], to.scaling, 1);
  out[2 * step] = scaled<Code>(values[2], to.scaling, 2);
}

// Step "write": the thread's pixel.
LADE_GRID_CODE void write_pixel(const resample_batch& batch, const grid_block& block, int thread,
                                const resample_thread& state) {
  const auto& from = batch.sources[block.z];
  const auto& to = batch.target;
  const int column = thread % resample_tile::width;
  const int row = thread / resample_tile::width;
  if (column >= tile_columns(batch, block) || row >= tile_rows(batch, block)) return;
  unsigned char values[3];
  for (int c = 0; c < 3; ++c) values[c] = static_cast<unsigned char>(byte_in(state.values, c));
  if (from.chroma_planes > 0)
    convert_yuv(values, from.conversion);
  else if (from.channels == 1)
    values[1] = values[2] = values[0];
  if (to.bgr) {
    const auto red = values[0];
    values[0] = values[2];
    values[2] = red;
  }
  const int x = static_cast<int>(block.x) * resample_tile::width + column;
  const int y = static_cast<int>(block.y) * resample_tile::height + row;
  switch (to.code) {
    case element_code::u8: return write_elements<element_code::u8>(to, from.slot, x, y, values);
    case element_code::f16: return write_elements<element_code::f16>(to, from.slot, x, y, values);
    case element_code::bf16: return write_elements<element_code::bf16>(to, from.slot, x, y, values);
    case element_code::f32: return write_elements<element_code::f32>(to, from.slot, x, y, values);
  }
}

// All steps of a block. `run(step)` calls step(thread, state) for each thread of the block, and
// returns when all have finished.
template <int SampleBytes, class Run>
LADE_GRID_CODE void resample_block(const resample_batch& batch, const grid_block& block,
                                   const resample_shared& shared, Run run) {
  const auto& from = batch.sources[block.z];
  run([&](int thread, resample_thread&) { plan_output(batch, block, shared, thread); });
  for (int p = 0; p <= from.chroma_planes; ++p) {
    const auto plane = view_of(from, p);
    for (int first = 0; first < resample_tile::height; first += batch.layout.rows) {
      run([&](int thread, resample_thread&) {
        blend_rows<SampleBytes>(batch, block, plane, first, shared, thread);
      });
      run([&](int thread, resample_thread& state) {
        filter_rows(batch, block, plane, first, shared, thread, state);
      });
    }
  }
  run([&](int thread, resample_thread& state) { write_pixel(batch, block, thread, state); });
}

inline grid_shape grid_of(const resample_batch& batch) {
  const auto tiles = [](int size, int tile) {
    return static_cast<unsigned>(divided_up(size, tile));
  };
  return {tiles(batch.target.width, resample_tile::width),
          tiles(batch.target.height, resample_tile::height), static_cast<unsigned>(batch.count),
          resample_tile::threads, shared_bytes(batch.layout)};
}

}  // namespace lade::cuda

#undef LADE_GRID_CODE
