// Lookup tables that decode a Huffman code together with the value after it (ITU-T T.81, F.2.2).

#pragma once

#include "jpeg_headers.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace lade::media {

// A code that is decoded bit by bit, for symbols that the lookup tables lack.
class slow_code {
 public:
  // Returns false if the lengths form no code. As in libjpeg, no code may consist of ones alone.
  bool build(const huffman_code& code);

  struct symbol {
    int length = 0;  // of the code; 0: there is no such code
    std::uint8_t value = 0;
  };
  symbol find(std::uint64_t bits) const noexcept;  // `bits`: first bit uppermost

 private:
  std::array<int, 17> ends_{};    // per length: the first 16 bits after its last code
  std::array<int, 17> firsts_{};  // per length: added to a code, the index of its symbol
  std::array<std::uint8_t, 256> symbols_{};
};

// The coding of values (T.81, table F.1): n bits that start with 1 encode 2^(n-1) to 2^n - 1, n
// bits that start with 0 encode -(2^n - 1) to -2^(n-1). A lookup includes the first value bit, the
// sign, in its index. So the value is the code and value bits, read as one number, plus a constant
// of the entry: the addend.

// A 64-bit entry of a table, for one symbol or for two if they fit:
//
//   bits   0       8       16        32       48            55       56
//          | total | bytes | addend  | first  | bits of the | ends a  | bytes of the |
//          | bits  |       |         | value  | second      | section | first        |
//
// - total bits: of all its codes and values; bits of the second: of the second symbol alone, 0 if
//   there is none
// - bytes: the advance of the output by all its symbols, 2 per coefficient
// - addend: of the last symbol, whose bits are the last ones
// - first value: the complete value of the first of two symbols. For a single symbol, it is 0 and
//   stored at the address of the last value, which then overwrites it.
// - ends a section: a block has two sections, DC and AC, each with a table. An end of block
//   advances the output by one coefficient, which is 0.
struct code_entry {
  static constexpr int index_bits = 11;
  static constexpr int most_bits = 18;             // of an entry: one load suffices for three
  static constexpr std::uint64_t long_code = 128;  // value of `bytes`: not in this table
  static constexpr std::uint64_t ends = std::uint64_t{1} << 55;

  static constexpr unsigned bits(std::uint64_t entry) noexcept { return entry & 0xff; }
  static constexpr std::uint64_t bytes(std::uint64_t entry) noexcept { return entry >> 8 & 0xff; }
  static constexpr std::uint64_t addend(std::uint64_t entry) noexcept { return entry >> 16; }
  static constexpr std::int16_t first_value(std::uint64_t entry) noexcept {
    return static_cast<std::int16_t>(entry >> 32);
  }
  static constexpr std::uint64_t bits_of_second(std::uint64_t entry) noexcept {
    return entry >> 48 & 0x7f;
  }
  static constexpr std::uint64_t first_bytes(std::uint64_t entry) noexcept { return entry >> 56; }
};

using code_entries = std::array<std::uint64_t, 1 << code_entry::index_bits>;

// A table for differences of DC.
struct dc_table {
  bool build(const huffman_code& code);

  alignas(64) code_entries entries;
  slow_code slow;
};

struct ac_table {
  static constexpr int long_bits = 17;  // of the index of long_entries
  static constexpr unsigned long_count = 2048;

  bool build(const huffman_code& code);

  // Combines pairs of symbols into one entry where they fit. Takes as long as decoding a few
  // kilobytes.
  void pair_symbols();

  alignas(64) code_entries entries;

  // Codes that are too long for `entries`. Canonical codes are sorted by length, so they are the
  // last ones. The lower 32 bits of an entry; 0: use the slow code.
  std::array<std::uint32_t, long_count> long_entries;
  unsigned first_long = 0;
  slow_code slow;
  bool paired = false;
  std::array<std::uint8_t, 1 << code_entry::index_bits> index_use;  // bits of code and sign
};

// Keeps tables for later images with the same codes. Most encoders use the same ones, and tables
// shared by two images take less CPU cache. Not thread-safe.
class jpeg_table_cache {
 public:
  // Return null for an invalid code. `pair`: whether to pair symbols even if the code is new.
  std::shared_ptr<const dc_table> dc(const huffman_code& code);
  std::shared_ptr<const ac_table> ac(const huffman_code& code, bool pair);

 private:
  template <class T>
  struct kept {
    std::vector<std::uint8_t> key;
    std::shared_ptr<T> table;
  };
  static constexpr std::size_t most_kept = 8;

  std::vector<kept<dc_table>> dc_;
  std::vector<kept<ac_table>> ac_;
};

}  // namespace lade::media
