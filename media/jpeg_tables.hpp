// Tables that decode Huffman codes together with the values behind them (ITU-T T.81, F.2.2).

#pragma once

#include "jpeg_headers.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace lade::media {

// A code by which bits are looked up one by one: for what the quick tables do not hold.
class slow_code {
 public:
  // False if the lengths are those of no code, as libjpeg sees it: it allows no code of ones alone.
  bool build(const huffman_code& code);

  struct symbol {
    int length = 0;  // of the code; 0: there is no such code
    std::uint8_t value = 0;
  };
  symbol find(std::uint64_t bits) const noexcept;  // the upper ones first

 private:
  std::array<int, 17> ends_{};    // of each length: the first 16 bits behind the last code
  std::array<int, 17> firsts_{};  // what is added to a code for the place of its symbol
  std::array<std::uint8_t, 256> symbols_{};
};

// The values behind codes are coded as (T.81, table F.1): with n bits, those that begin with 1
// stand for 2^(n-1) to 2^n - 1, those that begin with 0 for -(2^n - 1) to -2^(n-1). A lookup takes
// the first value bit, the sign, into its index. So code and value bits together, taken as one
// number, only miss a constant of the entry, the addend.

// An entry of a table, 64 bits, for one symbol or for two where they fit:
//
//   bits   0       8       16        32       48            55       56
//          | total | bytes | addend  | first  | bits of the | ends a  | bytes of the |
//          | bits  |       |         | value  | second      | section | first        |
//
// `bytes` are those of the coefficients by which all of its symbols advance, 2 each. `addend`
// belongs to the value of the last symbol, whose bits are the last ones. `first value` is the whole
// value of the first of two; of one alone it is 0, and written where the value of the last is
// written after it. A block has two sections, that of DC and that of AC, each with a table. An end
// of block advances by one coefficient, which is 0.
struct code_entry {
  static constexpr int index_bits = 11;
  static constexpr int most_bits = 18;  // of an entry: three fit into what is loaded at a time
  static constexpr std::uint64_t long_code = 128;  // bytes: not in this table
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

// Differences of DC.
struct dc_table {
  bool build(const huffman_code& code);

  alignas(64) code_entries entries;
  slow_code slow;
};

struct ac_table {
  static constexpr int long_bits = 17;  // of the index of long_entries
  static constexpr unsigned long_count = 2048;

  bool build(const huffman_code& code);

  // Has entries hold two symbols. Takes as long as decoding a few kilobytes.
  void pair_symbols();

  alignas(64) code_entries entries;

  // Codes that are too long for `entries`: canonical codes are sorted by length, so that those are
  // the last ones. In the lower 32 bits of the same form; 0: use the slow code.
  std::array<std::uint32_t, long_count> long_entries;
  unsigned first_long = 0;
  slow_code slow;
  bool paired = false;
  std::array<std::uint8_t, 1 << code_entry::index_bits> index_use;  // bits of code and sign
};

// Tables that are kept for the next image with the same codes: most writers use the same ones, and
// tables that two images share are in the cache of the processor once. For one thread.
class jpeg_table_cache {
 public:
  // Null if the code is none. `pair`: whether two symbols in an entry pay even if the code is new.
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
