#include "jpeg_entropy.hpp"

#include <bit>

#define LADE_INLINE [[gnu::always_inline]] static inline

namespace lade::media {

// What the loop keeps in registers.
struct jpeg_cursor {
  std::uint64_t word;
  std::uint64_t position;
  std::uint64_t k;
};

// At least 57 bits from a position on, the first one on top.
LADE_INLINE std::uint64_t bits_at(std::uint64_t position) noexcept {
  std::uint64_t loaded;
  __builtin_memcpy(&loaded, reinterpret_cast<const void*>(position >> 3), sizeof loaded);
  if constexpr (std::endian::native == std::endian::little) loaded = __builtin_bswap64(loaded);
  return loaded << (position & 7);
}

// Code and value bits as one number, of 1 to 63 bits.
LADE_INLINE std::uint64_t first_bits(std::uint64_t bits, unsigned count) noexcept {
  return bits >> (64 - count);
}

// What calls return, so that the loop's cursor stays in registers.
struct read_value {
  int value = 0;
  unsigned bits = 0;  // of code and value
  unsigned run = 0;   // zeros before it
};

// The code and the value that `bits` begin with; `size` and `run` are in the symbol.
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

[[gnu::noinline]] static read_value read_dc_slowly(jpeg_stream& s, std::uint64_t bits) noexcept {
  return read_slowly(s.next->dc->slow, bits, s.damaged);
}

// By vectors: GCC would call memset, or use an instruction that is slow to start.
LADE_INLINE void clear_block(std::int16_t* block) noexcept {
  using vector [[gnu::vector_size(32), gnu::may_alias]] = std::int16_t;
  for (int i = 0; i < 4; ++i) reinterpret_cast<vector*>(block)[i] = vector{};
}

// Decodes the DC coefficient of the next block (T.81, F.2.2.1).
LADE_INLINE void begin_block(jpeg_stream& s, jpeg_cursor& c) noexcept {
  clear_block(s.block);
  if (c.position > s.limit) [[unlikely]]
    c.position = s.limit;
  const auto bits = bits_at(c.position);
  const auto& tables = *s.next;
  const auto entry = tables.dc->entries[bits >> (64 - dc_table::index_bits)];
  int difference = 0;
  if (const unsigned length = entry & 63; length != 0) [[likely]] {
    difference = static_cast<std::int16_t>(first_bits(bits, length) + (entry >> 16));
    c.position += length;
  } else {
    const auto read = read_dc_slowly(s, bits);
    difference = read.value;
    c.position += read.bits;
  }
  const int dc = s.predictions[tables.component] += difference;
  *s.block = static_cast<std::int16_t>(dc);
  s.damaged |= dc != *s.block;
  s.ac_entries = tables.ac->entries.data();
  c.k = 0;
}

// Reads a long code and stores its value. Returns the cursor behind it.
[[gnu::noinline]] static jpeg_cursor read_long_code(jpeg_stream& s, std::uint64_t position,
                                                    std::uint64_t k) noexcept {
  const auto& table = *s.next->ac;
  const auto bits = bits_at(position);
  const auto index = static_cast<unsigned>(bits >> (64 - ac_table::long_bits)) - table.first_long;
  int value = 0;
  if (const auto entry = index < ac_table::long_count ? table.long_entries[index] : 0; entry != 0) {
    position += ac_entry::bits(entry);
    k += ac_entry::steps(entry);
    value = static_cast<int>(first_bits(bits, ac_entry::bits(entry)) + ac_entry::addend(entry));
  } else {
    const auto read = read_slowly(table.slow, bits, s.damaged);
    position += read.bits;
    k += s.damaged || (read.value == 0 && read.run < 15) ? ac_entry::end_of_block : read.run + 1;
    value = read.value;
  }
  if (k < 64)
    s.block[k] = static_cast<std::int16_t>(value);
  else if (k < ac_entry::end_of_block)
    s.damaged = true;
  return {.word = 0, .position = position, .k = k};
}

// After an entry that led to or past the last coefficient. An entry of two symbols may have led
// there with the first one: then the bits of the second belong to the next block. True if the
// block was the last of the chunk.
LADE_INLINE bool end_block(jpeg_stream& s, jpeg_cursor& c, std::uint64_t entry) noexcept {
  if (c.k >= ac_entry::long_code) [[unlikely]] {
    c = read_long_code(s, c.position, c.k - ac_entry::long_code);
    if (c.k < 63) return false;
  } else {
    const auto first_k = c.k - ac_entry::steps(entry) + ac_entry::first_steps(entry);
    auto by_first = -std::uint64_t{first_k == 63};
    asm("" : "+r"(by_first));  // a mask, no jump: it would be predicted badly
    c.position -= by_first & ac_entry::bits_of_second(entry);
    const auto past = [](std::uint64_t k) { return k - 64 < ac_entry::end_of_block - 64; };
    s.overruns |= std::uint64_t{past(first_k)} | (std::uint64_t{past(c.k)} & ~by_first);
  }
  s.block += 64;
  if (++s.next == s.end) return true;
  begin_block(s, c);
  return false;
}

// Read from memory each time: more streams than registers are in the loop.
template <class T>
LADE_INLINE T reload(const T& value) noexcept {
  return const_cast<const volatile T&>(value);
}

// The lower bits, as many as the lowest byte of `count` says.
template <bool bmi2>
LADE_INLINE std::uint64_t last_bits(std::uint64_t bits, std::uint64_t count) noexcept {
  if constexpr (bmi2) {
    std::uint64_t kept;  // GCC makes two instructions of the other
    asm("bzhi %2, %1, %0" : "=r"(kept) : "r"(bits), "r"(count) : "cc");
    return kept;
  } else {
    return bits & ((std::uint64_t{1} << (count & 63)) - 1);
  }
}

template <bool bmi2>
LADE_INLINE std::uint64_t look_up(jpeg_stream& s, jpeg_cursor& c) noexcept {
  const auto entry = reload(s.ac_entries)[c.word >> (64 - ac_table::index_bits)];
  auto* const block = reload(s.block);
  const unsigned length = entry & 63;
  c.word = c.word << length | c.word >> ((64 - length) & 63);
  c.position += ac_entry::bits(entry);
  block[c.k + ac_entry::first_steps(entry)] = ac_entry::first_value(entry);
  c.k += ac_entry::steps(entry);
  const auto code_and_value = last_bits<bmi2>(c.word, entry);
  block[c.k] = static_cast<std::int16_t>(code_and_value + ac_entry::addend(entry));
  return entry;
}

// Three lookups, as many as the loaded bits are enough for, or fewer if a block ends. True if the
// chunk is complete.
template <bool bmi2>
LADE_INLINE bool decode_three(jpeg_stream& s, jpeg_cursor& c) noexcept {
  static_assert(3 * ac_table::most_bits <= 57);
  c.word = bits_at(c.position);
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) {
    const auto entry = look_up<bmi2>(s, c);
    if (c.k >= 63) return end_block(s, c, entry);
  }
  return false;
}

LADE_INLINE jpeg_cursor cursor_of(const jpeg_stream& s) noexcept {
  return {.word = s.word, .position = s.position, .k = s.k};
}

LADE_INLINE void keep_cursor(jpeg_stream& s, const jpeg_cursor& c) noexcept {
  s.word = c.word;
  s.position = c.position;
  s.k = c.k;
}

template <bool bmi2>
LADE_INLINE void decode_one(jpeg_stream& stream) noexcept {
  auto c = cursor_of(stream);
  while (!decode_three<bmi2>(stream, c)) {}
  keep_cursor(stream, c);
}

template <bool bmi2>
LADE_INLINE int decode_two(jpeg_stream& a, jpeg_stream& b) noexcept {
  auto in_a = cursor_of(a), in_b = cursor_of(b);
  int complete = 0;
  for (;;) {
    if (decode_three<bmi2>(a, in_a)) break;
    if (decode_three<bmi2>(b, in_b)) {
      complete = 1;
      break;
    }
  }
  keep_cursor(a, in_a);
  keep_cursor(b, in_b);
  return complete;
}

void jpeg_stream::begin_chunk(int count) noexcept {
  block = coefficients.data();
  next = order.data();
  end = next + count;
  auto c = cursor_of(*this);
  begin_block(*this, c);
  keep_cursor(*this, c);
}

static void decode_one_plain(jpeg_stream& stream) { decode_one<false>(stream); }
static int decode_two_plain(jpeg_stream& a, jpeg_stream& b) { return decode_two<false>(a, b); }

const jpeg_entropy plain_entropy{decode_one_plain, decode_two_plain};

#if defined(__x86_64__)

#define LADE_BMI2 [[gnu::target("bmi,bmi2,avx2")]]

LADE_BMI2 static void decode_one_bmi2(jpeg_stream& stream) { decode_one<true>(stream); }
LADE_BMI2 static int decode_two_bmi2(jpeg_stream& a, jpeg_stream& b) {
  return decode_two<true>(a, b);
}

const jpeg_entropy bmi2_entropy{decode_one_bmi2, decode_two_bmi2};

#undef LADE_BMI2

#endif

}  // namespace lade::media

#undef LADE_INLINE
