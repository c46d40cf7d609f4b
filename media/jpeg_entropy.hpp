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
inline constexpr int jpeg_most_blocks = 6;  // of an MCU

// The table and the place of a section of a chunk: see jpeg_stream.
struct jpeg_section {
  const std::uint64_t* table = nullptr;
  std::uint64_t place = 0;  // address behind the block's last coefficient, by zigzag order
};

// One image, as the loop sees it: a chunk of blocks to be decoded. Positions are in bits, from
// address 0: those of a byte are 8 times its address and up.
//
// A chunk is a row of sections: DC and AC of its first block, DC and AC of the second one, ... Each
// has a table and a place for its coefficients. The lookup that ends a section is as good as any
// other one: the next table and place are taken by a conditional move, since a jump would be
// predicted badly. Behind the last section there is one with a table of zeros, by which nothing
// advances. So whether the chunk is complete need not be asked at each lookup.
struct jpeg_stream {
  // The order of blocks in each chunk. To be called before the first chunk.
  void begin_image(std::span<const jpeg_block> blocks_of_mcu) noexcept;

  // Begins a chunk: the next `blocks` blocks, a multiple of those of an MCU.
  void begin_chunk(int blocks) noexcept;

  // Coefficients of a block of the chunk.
  const std::int16_t* block(int i) const noexcept {
    return &coefficients[block_stride * static_cast<std::size_t>(i)];
  }

  // Makes coefficients of the differences of DC, once the chunk is complete.
  void end_chunk() noexcept;

  std::uint64_t position = 0;
  std::uint64_t limit = 0;                // address behind which at most 64 bytes are read
  jpeg_section at;                        // table and place of the next lookup
  const jpeg_section* section = nullptr;  // in `sections`, to which it belongs
  std::size_t count = 0;                  // of blocks in the chunk
  std::array<int, 3> predictions{};       // of DC, of each component
  bool damaged = false;                   // a code or a coefficient that does not exist
  std::uint64_t overruns = 0;             // not 0: coefficients behind a block's last

  static constexpr std::size_t most_blocks = jpeg_chunk * jpeg_most_blocks;
  std::size_t mcu_blocks = 0;  // of an MCU
  std::array<jpeg_block, most_blocks + 1> order;
  std::array<jpeg_section, 2 * most_blocks + 2> sections;

  // In zigzag order. Each block has as much room behind it, for values behind the last coefficient:
  // one bit of the address tells whether a place is there.
  static constexpr std::size_t block_stride = 128;
  alignas(256) std::array<std::int16_t, (most_blocks + 1) * block_stride> coefficients;
};

// Decode until the chunk of one is complete. The second returns which.
struct jpeg_entropy {
  void (*one)(jpeg_stream& stream);
  int (*two)(jpeg_stream& a, jpeg_stream& b);
};

extern const jpeg_entropy plain_entropy;
extern const jpeg_entropy bmi2_entropy;  // shifts by the bits of a register in one instruction

}  // namespace lade::media
