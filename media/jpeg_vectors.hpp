// The loops of jpeg_kernels.hpp over vectors. The source of an instruction set includes this file,
// in the namespace LADE_VECTORS and with functions marked LADE_TARGET. So each has its own copy of
// the loops. The source first defines the operations:
//
//   vector                 one lane of 128 bits for each of `blocks_at_once` blocks
//   add_16, ...            operations on all elements, named by the bits of an element
//   load_zigzag, ...       operations for which the instruction sets differ too much
//
// Both packs saturate. Interleaving and picking stay within lanes. Loops over vectors are unrolled
// by pragmas: at -O2, GCC would keep arrays of vectors in memory.

namespace lade::media::LADE_VECTORS {

// A pair of factors for multiply_add.
LADE_TARGET static inline vector factors(int low, int high) {
  return all_32((low & 0xffff) | static_cast<int>(static_cast<unsigned>(high) << 16));
}

// 32-bit values, in the order of interleave_low_16 and interleave_high_16.
struct wide_vectors {
  vector low;
  vector high;
};

LADE_TARGET static inline wide_vectors add(const wide_vectors& a, const wide_vectors& b) {
  return {add_32(a.low, b.low), add_32(a.high, b.high)};
}

LADE_TARGET static inline wide_vectors subtract(const wide_vectors& a, const wide_vectors& b) {
  return {subtract_32(a.low, b.low), subtract_32(a.high, b.high)};
}

// a * x + b * y.
LADE_TARGET static inline wide_vectors weighted(int a, vector x, int b, vector y) {
  const auto by = factors(a, b);
  return {multiply_add(interleave_low_16(x, y), by), multiply_add(interleave_high_16(x, y), by)};
}

// x * 2^bits, plus half a unit of a later right shift by `shift`.
template <int shift, int bits = 13>
LADE_TARGET static inline wide_vectors widened(vector x) {
  const auto round = all_32(1 << (shift - 1));
  return {add_32(shift_right_32<16 - bits>(interleave_low_16(zero(), x)), round),
          add_32(shift_right_32<16 - bits>(interleave_high_16(zero(), x)), round)};
}

template <int shift>
LADE_TARGET static inline vector narrowed(const wide_vectors& x) {
  return pack_32(shift_right_32<shift>(x.low), shift_right_32<shift>(x.high));
}

// Transforms all lines along one axis: see transform_line in jpeg_kernels.cpp.
template <int shift>
LADE_TARGET static inline void transform_lines(vector* x) {
  const auto even_2 = weighted(4433, x[2], 4433 - 15137, x[6]);
  const auto even_3 = weighted(4433 + 6270, x[2], 4433, x[6]);
  const auto even_0 = widened<shift>(add_16(x[0], x[4]));
  const auto even_1 = widened<shift>(subtract_16(x[0], x[4]));

  const auto sum_73 = add_16(x[7], x[3]), sum_51 = add_16(x[5], x[1]);
  const auto z3 = weighted(9633 - 16069, sum_73, 9633, sum_51);
  const auto z4 = weighted(9633, sum_73, 9633 - 3196, sum_51);
  const auto odd_0 = add(weighted(2446 - 7373, x[7], -7373, x[1]), z3);
  const auto odd_1 = add(weighted(16819 - 20995, x[5], -20995, x[3]), z4);
  const auto odd_2 = add(weighted(-20995, x[5], 25172 - 20995, x[3]), z3);
  const auto odd_3 = add(weighted(-7373, x[7], 12299 - 7373, x[1]), z4);

  const auto put = [x](int i, const wide_vectors& even, const wide_vectors& odd) LADE_TARGET {
    x[i] = narrowed<shift>(add(even, odd));
    x[7 - i] = narrowed<shift>(subtract(even, odd));
  };
  put(0, add(even_0, even_3), odd_3);
  put(1, add(even_1, even_2), odd_2);
  put(2, subtract(even_1, even_2), odd_1);
  put(3, subtract(even_0, even_3), odd_0);
}

// The same for lines whose upper four values are 0. The other values are in pairs: 0 and 2, 1 and
// 3. Each factor is the sum of the factors of transform_lines for that value.
template <int shift>
LADE_TARGET static inline void transform_low_lines(vector pairs_02, vector pairs_13, vector* out) {
  const auto round = all_32(1 << (shift - 1));
  const auto put = [&](int i, int even_by, int odd_by_1, int odd_by_3) LADE_TARGET {
    const auto even = add_32(multiply_add(pairs_02, factors(1 << 13, even_by)), round);
    const auto odd = multiply_add(pairs_13, factors(odd_by_1, odd_by_3));
    out[i] = shift_right_32<shift>(add_32(even, odd));
    out[7 - i] = shift_right_32<shift>(subtract_32(even, odd));
  };
  put(0, 4433 + 6270, 12299 - 7373 + 9633 - 3196, 9633);
  put(1, 4433, 9633, 25172 - 20995 + 9633 - 16069);
  put(2, -4433, 9633 - 3196, 9633 - 20995);
  put(3, -4433 - 6270, 9633 - 7373, 9633 - 16069);
}

// Eight values to four: see transform_line_to_4 in jpeg_kernels.cpp.
template <int shift>
LADE_TARGET static inline void transform_lines_to_4(const vector* x, wide_vectors* out) {
  const auto mean = widened<shift, 14>(x[0]), even = weighted(15137, x[2], -6270, x[6]);
  const auto outer = add(weighted(20995, x[1], 7373, x[3]), weighted(-4926, x[5], -4176, x[7]));
  const auto inner = add(weighted(8697, x[1], -17799, x[3]), weighted(11893, x[5], -1730, x[7]));
  out[0] = add(add(mean, even), outer);
  out[1] = add(subtract(mean, even), inner);
  out[2] = subtract(subtract(mean, even), inner);
  out[3] = subtract(add(mean, even), outer);
}

// The same to two.
template <int shift>
LADE_TARGET static inline void transform_lines_to_2(const vector* x, wide_vectors* out) {
  const auto mean = widened<shift, 15>(x[0]);
  const auto odd = add(weighted(29692, x[1], -10426, x[3]), weighted(6967, x[5], -5906, x[7]));
  out[0] = add(mean, odd);
  out[1] = subtract(mean, odd);
}

template <int side, int shift>
LADE_TARGET static inline void transform_lines_to(const vector* x, wide_vectors* out) {
  if constexpr (side == 4)
    transform_lines_to_4<shift>(x, out);
  else
    transform_lines_to_2<shift>(x, out);
}

// Transposes 8 x 8 words in each lane.
LADE_TARGET static inline void transpose_lanes(vector* x) {
  vector pairs[8], fours[8];
#pragma GCC unroll 8
  for (int i = 0; i < 4; ++i) {
    pairs[2 * i] = interleave_low_16(x[2 * i], x[2 * i + 1]);
    pairs[2 * i + 1] = interleave_high_16(x[2 * i], x[2 * i + 1]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 2; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < 2; ++j) {
      fours[4 * i + 2 * j] = interleave_low_32(pairs[4 * i + j], pairs[4 * i + 2 + j]);
      fours[4 * i + 2 * j + 1] = interleave_high_32(pairs[4 * i + j], pairs[4 * i + 2 + j]);
    }
#pragma GCC unroll 8
  for (int j = 0; j < 4; ++j) {
    x[2 * j] = interleave_low_64(fours[j], fours[4 + j]);
    x[2 * j + 1] = interleave_high_64(fours[j], fours[4 + j]);
  }
}

// Saturates columns of samples to bytes, and stores them by rows.
LADE_TARGET static inline void store_blocks(const vector* x, std::uint8_t* const* out,
                                            std::ptrdiff_t stride) {
  const auto a = pack_16(x[0], x[4]), b = pack_16(x[1], x[5]);
  const auto c = pack_16(x[2], x[6]), d = pack_16(x[3], x[7]);
  const auto ac_low = interleave_low_8(a, c), ac_high = interleave_high_8(a, c);
  const auto bd_low = interleave_low_8(b, d), bd_high = interleave_high_8(b, d);
  const auto left_0 = interleave_low_8(ac_low, bd_low);
  const auto left_1 = interleave_high_8(ac_low, bd_low);
  const auto right_0 = interleave_low_8(ac_high, bd_high);
  const auto right_1 = interleave_high_8(ac_high, bd_high);
  const auto centre = all_8(-128);
  alignas(sizeof(vector)) std::uint8_t rows[4][sizeof(vector)];  // two rows of each block
  store(bits_differ(interleave_low_32(left_0, right_0), centre), rows[0]);
  store(bits_differ(interleave_high_32(left_0, right_0), centre), rows[1]);
  store(bits_differ(interleave_low_32(left_1, right_1), centre), rows[2]);
  store(bits_differ(interleave_high_32(left_1, right_1), centre), rows[3]);
  for (int block = 0; block < blocks_at_once; ++block)
#pragma GCC unroll 8
    for (int y = 0; y < 8; ++y)
      std::memcpy(out[block] + y * stride, rows[y / 2] + 16 * block + 8 * (y % 2), 8);
}

// The transforms of blocks that have only a mean. Returns false if a mean is larger than `most`.
template <int side>
LADE_TARGET static inline bool fill_blocks(const std::int16_t* const* blocks,
                                           std::int16_t quantisation, int most,
                                           std::uint8_t* const* out, std::ptrdiff_t stride) {
  bool exact = true;
#pragma GCC unroll 8
  for (int i = 0; i < blocks_at_once; ++i) {
    const int mean = static_cast<std::int16_t>(blocks[i][0] * quantisation);
    const int sample = (mean + 4) >> 3;
    const int cut = sample < -128 ? -128 : sample > 127 ? 127 : sample;
#pragma GCC unroll 8
    for (int y = 0; y < side; ++y) std::memset(out[i] + y * stride, cut + 128, side);
    exact &= -most <= mean && mean <= most;
  }
  return exact;
}

// Dequantises and transforms blocks whose coefficients are 0 except for the 4 x 4 lowest
// frequencies.
LADE_TARGET static inline bool transform_low_blocks(const zigzag_vectors& zigzag,
                                                    const std::int16_t* quantisation,
                                                    std::uint8_t* const* out,
                                                    std::ptrdiff_t stride) {
  vector pairs[2], rows[8], x[8];
  pairs_of_zigzag(zigzag, pairs);
#pragma GCC unroll 8
  for (std::size_t i = 0; i < 2; ++i) {
    alignas(16) std::array<std::int16_t, 8> by;
#pragma GCC unroll 8
    for (std::size_t j = 0; j < 8; ++j) by[j] = quantisation[jpeg_low_pairs[i][j]];
    pairs[i] = multiply_16(pairs[i], load_in_each_lane(by.data()));
  }
  const bool exact = all_within(bits_both(pairs[0], all_32(0xffff)), 8191);
  transform_low_lines<11>(pairs[0], pairs[1], rows);
  vector columns_02[2], columns_13[2];  // pairs of the upper four rows and of the lower ones
#pragma GCC unroll 8
  for (int i = 0; i < 2; ++i) {
    const auto upper = pack_32(rows[4 * i], rows[4 * i + 1]);
    const auto lower = pack_32(rows[4 * i + 2], rows[4 * i + 3]);
    columns_02[i] = pick_even_32(upper, lower);
    columns_13[i] = pick_odd_32(upper, lower);
  }
  vector upper[8], lower[8];
  transform_low_lines<18>(columns_02[0], columns_13[0], upper);
  transform_low_lines<18>(columns_02[1], columns_13[1], lower);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) x[i] = pack_32(upper[i], lower[i]);
  store_blocks(x, out, stride);
  return exact;
}

LADE_TARGET static inline bool transform_all(const zigzag_vectors& zigzag,
                                             const std::int16_t* quantisation,
                                             std::uint8_t* const* out, std::ptrdiff_t stride) {
  vector x[8];
  rows_of_zigzag(zigzag, x);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) x[i] = multiply_16(x[i], load_in_each_lane(quantisation + 8 * i));
  const bool exact = all_within(x[0], 8191);
  transform_lines<11>(x);
  transpose_lanes(x);
  transform_lines<18>(x);
  store_blocks(x, out, stride);
  return exact;
}

LADE_TARGET static bool transform_few(const std::int16_t* const* blocks,
                                      const std::int16_t* quantisation, std::uint8_t* const* out,
                                      std::ptrdiff_t stride) {
  zigzag_vectors zigzag;
  const auto used = load_zigzag(blocks, zigzag);
  if (used == jpeg_used::all) return transform_all(zigzag, quantisation, out, stride);
  if (used == jpeg_used::low) return transform_low_blocks(zigzag, quantisation, out, stride);
  return fill_blocks<8>(blocks, quantisation[0], 8191, out, stride);
}

// See columns_are_small in jpeg_kernels.cpp.
LADE_TARGET static inline bool columns_are_small(const vector* x) {
  auto sums = absolute_16(x[0]);
#pragma GCC unroll 8
  for (int i = 1; i < 8; ++i) sums = add_unsigned_16(sums, absolute_16(x[i]));
  return all_at_most_16(sums, 4096);
}

// Stores 4 x 4 or 2 x 2 samples of each block.
template <int side>
LADE_TARGET static inline void store_small_blocks(vector samples, std::uint8_t* const* out,
                                                  std::ptrdiff_t stride) {
  alignas(sizeof(vector)) std::uint8_t rows[sizeof(vector)];
  store(bits_differ(samples, all_8(-128)), rows);
  for (int block = 0; block < blocks_at_once; ++block)
#pragma GCC unroll 8
    for (int y = 0; y < side; ++y)
      std::memcpy(out[block] + y * stride, rows + 16 * block + 4 * y, side);
}

// Transforms to 4 x 4 or 2 x 2 samples.
template <int side>
LADE_TARGET static bool reduce_few(const std::int16_t* const* blocks,
                                   const std::int16_t* quantisation, std::uint8_t* const* out,
                                   std::ptrdiff_t stride) {
  constexpr int most = 4096, more = side == 4 ? 1 : 2;  // additional bits of the shift
  zigzag_vectors zigzag;
  if (load_zigzag(blocks, zigzag) == jpeg_used::mean)
    return fill_blocks<side>(blocks, quantisation[0], most, out, stride);
  vector x[8];
  rows_of_zigzag(zigzag, x);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) x[i] = multiply_16(x[i], load_in_each_lane(quantisation + 8 * i));
  const bool exact = columns_are_small(x);
  wide_vectors lines[4] = {};
  transform_lines_to<side, 11 + more>(x, lines);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) x[i] = i < side ? narrowed<11 + more>(lines[i % side]) : zero();
  transpose_lanes(x);
  transform_lines_to<side, 18 + more>(x, lines);
  vector columns[4];  // with the rows in the lower half of each lane
#pragma GCC unroll 8
  for (int i = 0; i < 4; ++i) columns[i] = shift_right_32<18 + more>(lines[i].low);
  const auto bytes = pack_16(pack_32(columns[0], columns[1]), pack_32(columns[2], columns[3]));
  store_small_blocks<side>(transpose_4_bytes(bytes), out, stride);
  return exact;
}

template <auto few>
LADE_TARGET static bool transform(const std::int16_t* const* blocks, int count,
                                  const std::int16_t* quantisation, std::uint8_t* const* out,
                                  std::ptrdiff_t stride) {
  bool exact = true;
  for (; count >= blocks_at_once; count -= blocks_at_once) {
    exact &= few(blocks, quantisation, out, stride);
    blocks += blocks_at_once;
    out += blocks_at_once;
  }
  if (count == 0) return exact;
  const std::int16_t* rest[blocks_at_once];
  std::uint8_t* rest_out[blocks_at_once];
#pragma GCC unroll 8
  for (int i = 0; i < blocks_at_once; ++i) {  // the last block fills the rest
    rest[i] = blocks[i < count ? i : count - 1];
    rest_out[i] = out[i < count ? i : count - 1];
  }
  return few(rest, quantisation, rest_out, stride) && exact;
}

static constexpr int samples_at_once = sizeof(vector) / 2;

// Stores the low bytes of words alternately, the first of `even` first.
LADE_TARGET static inline void store_alternating(vector even, vector odd, std::uint8_t* out) {
  store(bits_either(even, shift_left_16<8>(odd)), out);
}

LADE_TARGET static inline vector three_and_one(vector three, vector one) {
  return add_16(add_16(three, shift_left_16<1>(three)), one);
}

LADE_TARGET static void double_columns(const std::uint8_t* in, int count, std::uint8_t* out) {
  for (int x = 0; x < count; x += samples_at_once) {
    const auto here = load_words(in + x);
    const auto left = three_and_one(here, load_words(in + x - 1));
    const auto right = three_and_one(here, load_words(in + x + 1));
    store_alternating(shift_right_16<2>(add_16(left, all_16(1))),
                      shift_right_16<2>(add_16(right, all_16(2))), out + 2 * x);
  }
}

LADE_TARGET static void double_both(const std::uint8_t* near, const std::uint8_t* far, int count,
                                    std::uint8_t* out) {
  const auto sum = [&](int x) LADE_TARGET {
    return three_and_one(load_words(near + x), load_words(far + x));
  };
  for (int x = 0; x < count; x += samples_at_once) {
    const auto here = sum(x);
    const auto left = three_and_one(here, sum(x - 1)), right = three_and_one(here, sum(x + 1));
    store_alternating(shift_right_16<4>(add_16(left, all_16(8))),
                      shift_right_16<4>(add_16(right, all_16(7))), out + 2 * x);
  }
}

LADE_TARGET static void double_rows(const std::uint8_t* near, const std::uint8_t* far, int bias,
                                    int count, std::uint8_t* out) {
  const auto round = all_16(bias);
  for (int x = 0; x < count; x += samples_at_once) {
    const auto sum = three_and_one(load_words(near + x), load_words(far + x));
    store_bytes(shift_right_16<2>(add_16(sum, round)), out + x);
  }
}

// (x * factor + 2^15) / 2^16 rounded down, in 16 bits.
LADE_TARGET static inline vector multiplied(vector x, int factor) {
  return halve_16(add_16(multiply_high_16(add_16(x, x), all_16(factor)), all_16(1)));
}

// The factors of jdcolor.c. Factors beyond 16 bits are split: 91881 = 65536 + 26345, 116130 = 2 *
// 65536 - 14942, -46802 = 18734 - 65536.
LADE_TARGET static void to_rgb(const std::uint8_t* const* in, int count, std::uint8_t* const* out) {
  const std::uint8_t *const y_row = in[0], *const cb_row = in[1], *const cr_row = in[2];
  std::uint8_t *const red = out[0], *const green = out[1], *const blue = out[2];
  const auto centre = all_16(128), half = all_32(1 << 15);
  for (int x = 0; x < count; x += samples_at_once) {
    const auto y = load_words(y_row + x);
    const auto cb = subtract_16(load_words(cb_row + x), centre);
    const auto cr = subtract_16(load_words(cr_row + x), centre);
    store_bytes(add_16(add_16(y, cr), multiplied(cr, 26345)), red + x);
    const auto mixed = narrowed<16>(add(weighted(-22554, cb, 18734, cr), {half, half}));
    store_bytes(add_16(subtract_16(y, cr), mixed), green + x);
    store_bytes(add_16(add_16(y, add_16(cb, cb)), multiplied(cb, -14942)), blue + x);
  }
}

}  // namespace lade::media::LADE_VECTORS
