#include "jpeg_entropy.hpp"

#include <bit>

#define LADE_INLINE [[gnu::always_inline]] static inline

namespace lade::media {

// The state that the loop keeps in registers.
struct jpeg_cursor {
  std::uint64_t word;   // the next bits, the first one is the most significant
  std::uint64_t count;  // how many bits of the word precede the byte at `next`
  std::uint64_t next;   // address of the next load
  std::uint64_t output;
  const std::uint64_t* table;
  const jpeg_section* section;
};

// Loads 64 bits from an address, the first one as the most significant.
LADE_INLINE std::uint64_t load_bits(std::uint64_t address) noexcept {
  std::uint64_t loaded = 0;
  __builtin_memcpy(&loaded, reinterpret_cast<const void*>(address), sizeof loaded);
  if constexpr (std::endian::native == std::endian::little) loaded = __builtin_bswap64(loaded);
  return loaded;
}

LADE_INLINE std::uint64_t position_of(const jpeg_cursor& c) noexcept {
  return 8 * c.next - c.count;
}

// Loads at least 48 bits from a position.
LADE_INLINE void load_from(jpeg_cursor& c, std::uint64_t position) noexcept {
  c.next = position / 8;
  c.word = load_bits(c.next) << position % 8;
  c.next += 7;
  c.count = 56 - position % 8;
}

// Fills the word to at least 56 bits. The address of the load does not depend on the last lookup,
// so the load completes before its bits are needed.
LADE_INLINE void refill(jpeg_cursor& c) noexcept {
  c.word |= load_bits(c.next) >> c.count;
  c.next += (63 - c.count) / 8;
  c.count |= 56;
}

// The first 1 to 63 bits, code and value, as one number.
LADE_INLINE std::uint64_t first_bits(std::uint64_t bits, unsigned count) noexcept {
  return bits >> (64 - count);
}

// Returned by value, so that the loop's cursor stays in registers.
struct read_value {
  int value = 0;
  unsigned bits = 0;  // length of the code and the value
  unsigned run = 0;   // zero coefficients before the value
};

// Reads the code and the value at the front of `bits`. The symbol holds the value's size and run.
static read_value read_slowly(const slow_code& code, std::uint64_t bits, bool& damaged) noexcept {
  const auto found = code.find(bits);
  damaged |= found.length == 0;
  const int size = found.value & 15;
  read_value read{.bits = unsigned(found.length + size), .run = unsigned(found.value >> 4)};
  if (size == 0) return read;
  const auto coded = static_cast<int>(first_bits(bits << found.length, unsigned(size)));
  read.value = coded >> (size - 1) != 0 ? coded : coded - (1 << size) + 1;
  return read;
}

static constexpr std::uint64_t coefficient_bytes = 128;

// The end of a block. `address`: after its first coefficient, up to its end.
LADE_INLINE std::uint64_t end_of_block(std::uint64_t address) noexcept {
  return (address - 1) / coefficient_bytes * coefficient_bytes + coefficient_bytes;
}

LADE_INLINE void store_before(std::uint64_t address, std::uint64_t value) noexcept {
  *reinterpret_cast<std::int16_t*>(address - 2) = static_cast<std::int16_t>(value);
}

LADE_INLINE void next_section(jpeg_cursor& c) noexcept {
  ++c.section;
  c.table = c.section->table;
  c.output = c.section->output;
}

// Reads a long code and stores its value.
[[gnu::noinline]] static jpeg_cursor read_long_code(jpeg_stream& s, jpeg_cursor c) noexcept {
  auto position = position_of(c);
  const auto bits = load_bits(position / 8) << position % 8;
  const auto section = static_cast<std::size_t>(c.section - s.sections.data());
  const auto& block = s.order[section / 2];
  if (section % 2 == 0) {
    const auto read = read_slowly(block.dc->slow, bits, s.damaged);
    position += read.bits;
    store_before(c.output, static_cast<std::uint64_t>(read.value));
    next_section(c);
    load_from(c, position);
    return c;
  }
  const auto& table = *block.ac;
  const auto index = static_cast<unsigned>(bits >> (64 - ac_table::long_bits)) - table.first_long;
  const auto end = end_of_block(c.output);
  std::uint64_t value = 0;
  bool ended = false;
  if (const auto entry = index < ac_table::long_count ? table.long_entries[index] : 0; entry != 0) {
    position += code_entry::bits(entry);
    c.output += code_entry::bytes(entry);
    value = first_bits(bits, code_entry::bits(entry)) + code_entry::addend(entry);
  } else {
    const auto read = read_slowly(table.slow, bits, s.damaged);
    position += read.bits;
    ended = s.damaged || (read.value == 0 && read.run < 15);
    if (!ended) c.output += 2 * (read.run + 1);
    value = static_cast<std::uint64_t>(read.value);
  }
  if (!ended && c.output <= end) store_before(c.output, value);
  s.damaged |= c.output > end;
  load_from(c, position);
  if (!ended && c.output < end) return c;
  next_section(c);
  return c;
}

// Ends a block after an entry that reached or passed the end. If the first of two symbols reached
// it, the bits of the second belong to the next block and are returned to the word.
LADE_INLINE void fill_block(jpeg_stream& s, jpeg_cursor& c, std::uint64_t entry) noexcept {
  const auto from = c.output - code_entry::bytes(entry), end = end_of_block(from);
  auto by_first = -std::uint64_t{from + code_entry::first_bytes(entry) == end && c.output > end};
  asm("" : "+r"(by_first));  // forces a mask: a branch would be mispredicted
  load_from(c, position_of(c) - (by_first & code_entry::bits_of_second(entry)));
  s.overruns |= std::uint64_t{c.output > end} & ~by_first;
  next_section(c);
}

// Advances to the next section if the entry ends this one.
LADE_INLINE void pass_end(jpeg_cursor& c, std::uint64_t entry) noexcept {
  const auto* const next = c.section + 1;
#if defined(__x86_64__)
  asm("bt $55, %[entry]\n\t"
      "cmovc %[next_table], %[table]\n\t"
      "cmovc %[next_output], %[output]\n\t"
      "cmovc %[next], %[section]"
      : [table] "+&r"(c.table), [output] "+&r"(c.output), [section] "+&r"(c.section)
      : [entry] "r"(entry), [next] "r"(next), [next_table] "m"(next->table),
        [next_output] "m"(next->output)
      : "cc");
#else
  const bool ends = (entry & code_entry::ends) != 0;
  c.table = ends ? next->table : c.table;
  c.output = ends ? next->output : c.output;
  c.section = ends ? next : c.section;
#endif
}

static constexpr code_entries no_advance{};

// Does three lookups, for which one refill suffices; fewer if a rare case occurs. Returns whether
// the chunk is complete.
LADE_INLINE bool decode_three(jpeg_stream& s, jpeg_cursor& c) noexcept {
  static_assert(3 * code_entry::most_bits <= 56);
  refill(c);
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) {
    const auto entry = c.table[c.word >> (64 - code_entry::index_bits)];
    const auto code_and_value = c.word >> (-entry & 63);
    c.word <<= entry & 63;
    c.count -= code_entry::bits(entry);
    store_before(c.output + code_entry::first_bytes(entry), entry >> 32);
    c.output += code_entry::bytes(entry);
    store_before(c.output, code_and_value + code_entry::addend(entry));
    if ((c.output & coefficient_bytes) != 0) [[unlikely]] {
      if (code_entry::bytes(entry) == code_entry::long_code) {
        c.output -= code_entry::long_code;
        c = read_long_code(s, c);
      } else {
        fill_block(s, c, entry);
      }
      break;
    }
    pass_end(c, entry);
  }
  if (c.next > s.limit) [[unlikely]] {
    asm volatile("");  // forces a branch: the next load would depend on a conditional move
    c.next = s.limit;
  }
  return c.table == no_advance.data();
}

LADE_INLINE jpeg_cursor cursor_of(const jpeg_stream& s) noexcept {
  jpeg_cursor c{.word = 0,
                .count = 0,
                .next = 0,
                .output = s.at.output,
                .table = s.at.table,
                .section = s.section};
  load_from(c, s.position);
  return c;
}

LADE_INLINE void keep_cursor(jpeg_stream& s, const jpeg_cursor& c) noexcept {
  s.position = position_of(c);
  s.at = {.table = c.table, .output = c.output};
  s.section = c.section;
}

LADE_INLINE void decode_one(jpeg_stream& stream) noexcept {
  auto c = cursor_of(stream);
  while (!decode_three(stream, c)) {}
  keep_cursor(stream, c);
}

LADE_INLINE int decode_two(jpeg_stream& a, jpeg_stream& b) noexcept {
  auto in_a = cursor_of(a), in_b = cursor_of(b);
  int complete = 0;
  for (;;) {
    if (decode_three(a, in_a)) break;
    if (decode_three(b, in_b)) {
      complete = 1;
      break;
    }
  }
  keep_cursor(a, in_a);
  keep_cursor(b, in_b);
  return complete;
}

void jpeg_stream::begin_image(std::span<const jpeg_block> blocks_of_mcu) noexcept {
  mcu_blocks = blocks_of_mcu.size();
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = blocks_of_mcu[i % mcu_blocks];
    const auto first = reinterpret_cast<std::uintptr_t>(&coefficients[block_stride * i]) + 2;
    sections[2 * i] = {.table = order[i].dc->entries.data(), .output = first};
    sections[2 * i + 1] = {.table = order[i].ac->entries.data(), .output = first};
  }
}

// Clears a block with vector stores. GCC would call memset or use `rep stos`, which is slow to
// start.
LADE_INLINE void clear_block(std::int16_t* block) noexcept {
  using vector [[gnu::vector_size(32), gnu::may_alias]] = std::int16_t;
  for (int i = 0; i < 4; ++i) reinterpret_cast<vector*>(block)[i] = vector{};
}

void jpeg_stream::begin_chunk(int blocks) noexcept {
  sections[2 * count].table = order[count].dc->entries.data();
  count = static_cast<std::size_t>(blocks);
  sections[2 * count].table = no_advance.data();
  for (std::size_t i = 0; i < count; ++i) clear_block(&coefficients[block_stride * i]);
  section = sections.data();
  at = *section;
}

// In an MCU, the blocks of each component are adjacent.
void jpeg_stream::end_chunk() noexcept {
  for (std::size_t first = 0, after = 0; first < mcu_blocks; first = after) {
    const auto component = order[first].component;
    int dc = predictions[component];
    while (after < mcu_blocks && order[after].component == component) ++after;
    for (std::size_t mcu = 0; mcu < count; mcu += mcu_blocks)
      for (std::size_t i = mcu + first; i < mcu + after; ++i) {
        auto& coefficient = coefficients[block_stride * i];
        dc += coefficient;
        coefficient = static_cast<std::int16_t>(dc);
        damaged |= dc != coefficient;
      }
    predictions[component] = dc;
  }
}

static void decode_one_plain(jpeg_stream& stream) { decode_one(stream); }
static int decode_two_plain(jpeg_stream& a, jpeg_stream& b) { return decode_two(a, b); }

const jpeg_entropy plain_entropy{decode_one_plain, decode_two_plain};

#if defined(__x86_64__)

#define LADE_BMI2 [[gnu::target("bmi,bmi2,avx2")]]

LADE_BMI2 static void decode_one_bmi2(jpeg_stream& stream) { decode_one(stream); }
LADE_BMI2 static int decode_two_bmi2(jpeg_stream& a, jpeg_stream& b) { return decode_two(a, b); }

const jpeg_entropy bmi2_entropy{decode_one_bmi2, decode_two_bmi2};

#undef LADE_BMI2

#endif

}  // namespace lade::media

#undef LADE_INLINE
