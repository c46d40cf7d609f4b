// Decoding of Huffman-coded coefficients (ITU-T T.81, F.2.2), of two images at a time.
//
// The length of a code must be known before the next one can be looked up. So a decoder of one
// image waits: for a load from a table, a shift, and the next load, some ten cycles in all for a
// few instructions. The images of a loader do not wait for each other:
//
//   image A   |look up|...wait...|look up|...wait...|look up|
//   image B            |look up|...wait...|look up|...wait...|look up|
//
// One loop does a few lookups of A, then a few of B. No thread, no switch, no state is stored in
// between: the position in both images is in registers.

#pragma once

#include "jpeg_tables.hpp"

#include <array>
#include <cstdint>

namespace lade::media {

// The tables of one block of an MCU.
struct jpeg_block {
  const dc_table* dc = nullptr;
  const ac_table* ac = nullptr;
  std::size_t component = 0;
};

// MCUs that are decoded before their coefficients are transformed.
inline constexpr int jpeg_chunk = 8;
inline constexpr int jpeg_most_blocks = 6;  // of an MCU

// One image, as the loop sees it: a chunk of blocks to be decoded. Positions are in bits, from
// address 0: those of a byte are 8 times its address and up.
struct jpeg_stream {
  // Begins a chunk: the next `count` blocks of an MCU's order, `count` a multiple of it.
  void begin_chunk(int count) noexcept;

  std::uint64_t position = 0;
  std::uint64_t limit = 0;  // reading never gets further than 512 bytes behind this
  std::uint64_t word = 0;   // bits from some position on, rotated to where the next lookup begins
  std::uint64_t k = 0;      // the last coefficient of the block, by zigzag order
  std::int16_t* block = nullptr;              // its coefficients
  const std::uint64_t* ac_entries = nullptr;  // its table
  const jpeg_block* next = nullptr;           // in `order`
  const jpeg_block* end = nullptr;
  std::array<int, 3> predictions{};  // of DC, of each component
  bool damaged = false;              // a code or a coefficient that does not exist
  std::uint64_t overruns = 0;        // bit 0: coefficients behind a block's last

  // The order of blocks in a chunk, one element more, and their coefficients in zigzag order with
  // room for what is written behind a block before its end is noticed.
  std::array<jpeg_block, jpeg_chunk * jpeg_most_blocks + 1> order;
  alignas(64) std::array<std::int16_t, (jpeg_chunk * jpeg_most_blocks + 6) * 64> coefficients;
};

// Decode until the chunk of one is complete. The second returns which.
struct jpeg_entropy {
  void (*one)(jpeg_stream& stream);
  int (*two)(jpeg_stream& a, jpeg_stream& b);
};

extern const jpeg_entropy plain_entropy;
extern const jpeg_entropy bmi2_entropy;  // shifts by the bits of a register in one instruction

}  // namespace lade::media
