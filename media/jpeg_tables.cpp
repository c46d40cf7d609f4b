#include "jpeg_tables.hpp"

#include <algorithm>

namespace lade::media {

// Calls f(bits, length, symbol) for each code, from the shortest to the longest (T.81, C.2).
// Returns false if the lengths form no code.
template <class F>
static bool for_each_code(const huffman_code& code, F f) {
  int bits = 0;
  std::size_t next = 0;
  for (int length = 1; length <= 16; ++length, bits <<= 1) {
    const int count = code.counts[static_cast<std::size_t>(length - 1)];
    if (count == 0) continue;
    if (bits + count >= 1 << length) return false;
    for (int i = 0; i < count; ++i) f(bits++, length, code.symbols[next++]);
  }
  return true;
}

bool slow_code::build(const huffman_code& code) {
  symbols_ = {};
  std::ranges::copy(code.symbols, symbols_.begin());
  firsts_ = {};
  ends_ = {};
  int code_number = 0;
  return for_each_code(code, [&](int bits, int length, std::uint8_t) {
    const auto l = static_cast<std::size_t>(length);
    if (ends_[l] == 0) firsts_[l] = code_number - bits;
    ends_[l] = (bits + 1) << (16 - length);
    ++code_number;
  });
}

slow_code::symbol slow_code::find(std::uint64_t bits) const noexcept {
  const int sixteen = static_cast<int>(bits >> 48);
  for (std::size_t length = 1; length <= 16; ++length) {
    if (sixteen >= ends_[length]) continue;
    const int code = sixteen >> (16 - length);
    return {.length = static_cast<int>(length),
            .value = symbols_[static_cast<std::size_t>(code + firsts_[length])]};
  }
  return {};
}

// The addend of a code with `size` value bits; see jpeg_tables.hpp.
static int value_addend(int code, int size, bool negative) {
  return -(code << size) - (negative ? (1 << size) - 1 : 0);
}

// The number of signs of values of a size.
static int sign_count(int size) { return size > 0 ? 2 : 1; }

static constexpr std::uint64_t single_entry(int bits, std::uint64_t bytes, int addend) {
  return bytes << 56 | std::uint64_t{static_cast<std::uint16_t>(addend)} << 16 | bytes << 8 |
         unsigned(bits);
}

static constexpr std::uint64_t no_entry = single_entry(0, code_entry::long_code, 0);

// Fills the entries whose index begins with `used` bits.
template <class T, std::size_t size>
static void fill_entries(std::array<T, size>& entries, int bits, int used, T entry) {
  const int rest = code_entry::index_bits - used;
  std::fill_n(entries.begin() + (bits << rest), 1 << rest, entry);
}

static bool fits_entry(int used, int bits) {
  return used <= code_entry::index_bits && bits <= code_entry::most_bits;
}

bool dc_table::build(const huffman_code& code) {
  constexpr int largest = 11;
  bool usual = true;
  entries.fill(no_entry);
  return slow.build(code) &&
         for_each_code(code,
                       [&](int bits, int length, std::uint8_t size) {
                         usual = usual && size <= largest;
                         for (int sign = 0; usual && sign < sign_count(size); ++sign) {
                           const int used = length + (size > 0);
                           const int prefix = size > 0 ? bits << 1 | sign : bits;
                           const auto addend = value_addend(bits, size, size > 0 && sign == 0);
                           if (fits_entry(used, length + size))
                             fill_entries(
                                 entries, prefix, used,
                                 single_entry(length + size, 0, addend) | code_entry::ends);
                         }
                       }) &&
         usual;
}

static bool ends_block(int run, int size) { return size == 0 && run != 15; }

static std::uint64_t symbol_bytes(int run, int size) {
  return ends_block(run, size) ? 2 : static_cast<std::uint64_t>(2 * (run + 1));
}

bool ac_table::build(const huffman_code& code) {
  constexpr int largest = 10;  // size of a value of 8-bit samples
  constexpr std::uint8_t none = 99;
  entries.fill(no_entry);
  long_entries.fill(0);
  index_use.fill(none);
  first_long = 0;
  paired = false;
  for_each_code(code, [&](int bits, int length, std::uint8_t) {
    if (length < code_entry::index_bits) first_long = unsigned(bits + 1) << (long_bits - length);
  });
  return slow.build(code) && for_each_code(code, [&](int bits, int length, std::uint8_t symbol) {
           const int run = symbol >> 4, size = symbol & 15;
           if (size > largest) return;
           for (int sign = 0; sign < sign_count(size); ++sign) {
             const int used = length + (size > 0);
             const int prefix = size > 0 ? bits << 1 | sign : bits;
             const auto entry = single_entry(length + size, symbol_bytes(run, size),
                                             value_addend(bits, size, size > 0 && sign == 0));
             if (fits_entry(used, length + size)) {
               fill_entries(entries, prefix, used,
                            entry | (ends_block(run, size) ? code_entry::ends : 0));
               fill_entries(index_use, prefix, used, static_cast<std::uint8_t>(used));
             }
             if (length < code_entry::index_bits || ends_block(run, size)) continue;
             const auto first = (unsigned(prefix) << (long_bits - used)) - first_long;
             const auto count = 1u << (long_bits - used);
             if (first + count <= long_count)
               std::fill_n(long_entries.begin() + first, count, static_cast<std::uint32_t>(entry));
           }
         });
}

// The second symbol's code and sign must lie within the index, after all bits of the first.
void ac_table::pair_symbols() {
  const auto single = entries;
  for (std::size_t index = 0; index < single.size(); ++index) {
    const auto first = single[index];
    const int rest = code_entry::index_bits - static_cast<int>(code_entry::bits(first));
    if (first == no_entry || (first & code_entry::ends) != 0 || rest < 1) continue;
    const auto behind = index << code_entry::bits(first) & (single.size() - 1);
    const auto second = single[behind];
    const auto bits = code_entry::bits(first) + code_entry::bits(second);
    if (second == no_entry || index_use[behind] > rest || bits > code_entry::most_bits) continue;
    const auto taken = index >> rest;  // code and value bits of the first symbol
    const auto value = static_cast<std::uint16_t>(taken + code_entry::addend(first));
    const auto addend = static_cast<std::uint16_t>(code_entry::addend(second) -
                                                   (taken << code_entry::bits(second)));
    entries[index] = code_entry::bytes(first) << 56 | (second & code_entry::ends) |
                     std::uint64_t{code_entry::bits(second)} << 48 | std::uint64_t{value} << 32 |
                     std::uint64_t{addend} << 16 |
                     (code_entry::bytes(first) + code_entry::bytes(second)) << 8 | bits;
  }
  paired = true;
}

// Finds or builds the table of a code. A full list drops a table that no image uses, if there is
// one.
template <class Kept>
static auto find_or_build(std::vector<Kept>& all, std::size_t most, const huffman_code& code,
                          bool& found) -> decltype(all[0].table) {
  std::vector<std::uint8_t> key(code.counts.begin(), code.counts.end());
  key.insert(key.end(), code.symbols.begin(), code.symbols.end());
  const auto same = std::ranges::find(all, key, &Kept::key);
  found = same != all.end();
  if (found) {
    std::rotate(all.begin(), same, same + 1);  // most recently used first
    return all.front().table;
  }
  using table = typename decltype(all[0].table)::element_type;
  std::shared_ptr<table> made;
  const auto unused = std::ranges::find_if(
      all.rbegin(), all.rend(), [](const Kept& each) { return each.table.use_count() == 1; });
  if (all.size() >= most && unused != all.rend()) {
    made = std::move(unused->table);
    all.erase(std::next(unused).base());
  } else {
    made = std::make_shared<table>();
  }
  if (!made->build(code)) return nullptr;
  all.insert(all.begin(), {.key = std::move(key), .table = made});
  return made;
}

std::shared_ptr<const dc_table> jpeg_table_cache::dc(const huffman_code& code) {
  bool found = false;
  return find_or_build(dc_, most_kept, code, found);
}

std::shared_ptr<const ac_table> jpeg_table_cache::ac(const huffman_code& code, bool pair) {
  bool found = false;
  auto table = find_or_build(ac_, most_kept, code, found);
  if (table != nullptr && !table->paired && (pair || found)) table->pair_symbols();
  return table;
}

}  // namespace lade::media
