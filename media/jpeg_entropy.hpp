// Decoding of Huffman-coded coefficients (ITU-T T.81, F.2.2), of two images at a time.
//
// The length of a code must be known before the next code can be looked up. So a decoder of one
// image is bound by latency: a load from a table, a shift and the next load take some ten cycles
// for a few instructions. Two images do not depend on each other:
//
//   image A   |look up|...wait...|look up|...wait...|look up|
//   image B            |look up|...wait...|look up|...wait...|look up|
//
// One loop does a few lookups of A, then a few of B, on one thread. The positions in both images
// stay in registers.

#pragma once

#include "jpeg_tables.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace lade::media {

// The tables of one block of an MCU.
struct jpeg_block {
  const dc_table* dc = nullptr;
  const ac_table* ac = nullptr;
  std::size_t component = 0;
};

// MCUs that are decoded before their coefficients are transformed.
inline constexpr int jpeg_chunk = 8;
inline constexpr int jpeg_most_blocks = 6;  // per MCU

// A section of a chunk: the DC or the AC coefficients of one block. See jpeg_stream.
struct jpeg_section {
  const std::uint64_t* table = nullptr;
  std::uint64_t output = 0;  // address after the last coefficient written, in zigzag order
};

// The state of the decoding loop for one image: a chunk of blocks. A position counts bits from
// address 0: bit i of a byte has position 8 * address + i.
//
// A chunk is a sequence of sections: DC of block 0, AC of block 0, DC of block 1, ... Each section
// has its table and its output address.
//   - At the end of a section, the loop selects the next table and output by conditional moves: a
//     branch would be mispredicted often.
//   - The section after the last one has a table of zeros, in which nothing advances. So a lookup
//     need not check whether the chunk is complete.
struct jpeg_stream {
  // Sets the order of the blocks in each chunk. Call before the first chunk.
  void begin_image(std::span<const jpeg_block> blocks_of_mcu) noexcept;

  // Starts a chunk. `blocks`: how many, a multiple of the blocks of an MCU.
  void begin_chunk(int blocks) noexcept;

  // Coefficients of a block of the chunk.
  const std::int16_t* block(int i) const noexcept {
    return &coefficients[block_stride * static_cast<std::size_t>(i)];
  }

  // Converts differences of DC to coefficients. Call when the chunk is complete.
  void end_chunk() noexcept;

  std::uint64_t position = 0;
  std::uint64_t limit = 0;                // at most 64 bytes are read after this address
  jpeg_section at;                        // table and output of the next lookup
  const jpeg_section* section = nullptr;  // the section of `at`, in `sections`
  std::size_t count = 0;                  // blocks in the chunk
  std::array<int, 3> predictions{};       // of DC, per component
  bool damaged = false;                   // read an undefined code or too many coefficients
  std::uint64_t overruns = 0;             // not 0: wrote coefficients past the end of a block

  static constexpr std::size_t most_blocks = jpeg_chunk * jpeg_most_blocks;
  std::size_t mcu_blocks = 0;  // per MCU
  std::array<jpeg_block, most_blocks + 1> order;
  std::array<jpeg_section, 2 * most_blocks + 2> sections;

  // In zigzag order. Each block is followed by unused memory of the same size, for coefficients
  // past its end. So one bit of an address shows whether it is past the end.
  static constexpr std::size_t block_stride = 128;
  alignas(256) std::array<std::int16_t, (most_blocks + 1) * block_stride> coefficients;
};

// Decode until a chunk is complete. `two` returns the index of its stream.
struct jpeg_entropy {
  void (*one)(jpeg_stream& stream);
  int (*two)(jpeg_stream& a, jpeg_stream& b);
};

extern const jpeg_entropy plain_entropy;
extern const jpeg_entropy bmi2_entropy;  // with BMI2's shifts

}  // namespace lade::media
