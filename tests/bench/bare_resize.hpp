// A separable, antialiased, bilinear resize for rows that arrive one by one: what a good engineer
// writes when images of one kind go to one size. Each source row is resized horizontally while it
// is in the first-level cache, into a ring of as many rows as the vertical filter looks at.
//
// The weights are those of Pillow. Horizontal results keep 6 fractional bits (Pillow rounds them to
// bytes), so a pixel differs from Pillow's by at most 1. The three builds (AVX-512, AVX2, plain)
// give the same bits; which one a program has is decided by the flags it is compiled with.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace bench {

// Which source samples each output of one axis is made of. Weights are in units of 2^-13.
struct axis {
  int outputs = 0;
  int taps = 0;                       // per output, a multiple of 4; the last may weigh nothing
  std::vector<int> first;             // of the source samples of an output
  std::vector<std::int16_t> weights;  // taps per output

  // Output i looks at `origin + (i + 0.5) * scale`, and only at samples in [begin, end). When
  // mirrored, the outputs come in the opposite order.
  void set(double origin, double scale, int begin, int end, int count, bool mirrored = false) {
    key wanted{origin, scale, begin, end, count, mirrored};
    if (wanted == key_) return;
    key_ = wanted;
    double support = std::max(1.0, scale);
    outputs = count;
    taps = (static_cast<int>(std::ceil(support)) * 2 + 1 + 3) / 4 * 4;
    first.assign(static_cast<std::size_t>(count), 0);
    weights.assign(static_cast<std::size_t>(count * taps), 0);
    std::vector<float> share(static_cast<std::size_t>(taps));
    int used = 1;
    for (int i = 0; i < count; ++i) {
      double centre = origin + (i + 0.5) * scale;
      int from = std::max(begin, static_cast<int>(centre - support + 0.5));
      int to = std::min(end, static_cast<int>(centre + support + 0.5));
      std::size_t output = static_cast<std::size_t>(mirrored ? count - 1 - i : i);
      first[output] = from;
      used = std::max(used, to - from);
      float sum = 0;
      for (int k = 0; k < to - from; ++k) {
        auto distance = static_cast<float>(std::abs((from + k - centre + 0.5) / support));
        sum += share[static_cast<std::size_t>(k)] = std::max(0.0F, 1 - distance);
      }
      std::int16_t* w = &weights[output * static_cast<std::size_t>(taps)];
      int left = one, heaviest = 0;
      for (int k = 0; k < to - from; ++k) {
        w[k] = static_cast<std::int16_t>(share[static_cast<std::size_t>(k)] / sum * one + 0.5F);
        left -= w[k];
        if (w[k] > w[heaviest]) heaviest = k;
      }
      w[heaviest] = static_cast<std::int16_t>(w[heaviest] + left);
    }
    narrow((used + 3) / 4 * 4);
    ++version;
  }

  int begin() const { return *std::min_element(first.begin(), first.end()); }
  int end() const {
    int last = 0;
    for (int i = 0; i < outputs; ++i) last = std::max(last, end_of(i));
    return last;
  }

  // One past the last sample that weighs anything in output i.
  int end_of(int i) const {
    const std::int16_t* w = &weights[static_cast<std::size_t>(i * taps)];
    int count = taps;
    while (count > 1 && w[count - 1] == 0) --count;
    return first[static_cast<std::size_t>(i)] + count;
  }

  static constexpr int one = 1 << 13;
  unsigned version = 0;  // changes when the tables do

 private:
  struct key {
    double origin, scale;
    int begin, end, count;
    bool mirrored;
    bool operator==(const key&) const = default;
  };

  // Drops taps that are nothing for every output.
  void narrow(int wanted) {
    if (wanted >= taps) return;
    for (int i = 0; i < outputs; ++i)
      for (int k = 0; k < wanted; ++k)
        weights[static_cast<std::size_t>(i * wanted + k)] =
            weights[static_cast<std::size_t>(i * taps + k)];
    taps = wanted;
  }

  key key_{0, 0, 0, 0, -1, false};
};

// Rows may be read and written this far beyond their end.
constexpr std::size_t row_slack = 128;

// Resizes rows of `channels` interleaved bytes to rows of 16-bit samples of 6 fractional bits.
class horizontal {
 public:
  // The rows given to `run` begin at sample `row_begin` of the image.
  void set(const axis& along, int channels, int row_begin) {
    if (along_ == &along && version_ == along.version && row_begin_ == row_begin) return;
    along_ = &along;
    version_ = along.version;
    channels_ = channels;
    row_begin_ = row_begin;
    prepare();
  }

  void run(const std::uint8_t* row, std::int16_t* out) const;

 private:
  void prepare();
  void run_plain(const std::uint8_t* row, std::int16_t* out) const {
    for (int i = 0; i < along_->outputs; ++i) {
      const std::int16_t* w = &along_->weights[static_cast<std::size_t>(i * along_->taps)];
      const std::uint8_t* from =
          row + (along_->first[static_cast<std::size_t>(i)] - row_begin_) * channels_;
      for (int channel = 0; channel < channels_; ++channel) {
        int sum = 64;
        for (int k = 0; k < along_->taps; ++k) sum += from[k * channels_ + channel] * w[k];
        out[i * channels_ + channel] = static_cast<std::int16_t>(sum >> 7);
      }
    }
  }

  const axis* along_ = nullptr;
  unsigned version_ = 0;
  int channels_ = 0;
  int row_begin_ = 0;
  // For the vector builds. A weight w is high * 128 + low with signed bytes, so that four taps are
  // two byte dot products.
  [[maybe_unused]] bool fits_ = false;  // every window of bytes is short enough for one permutation
  [[maybe_unused]] int groups_ = 0;     // of four taps
  std::vector<int> base_;
  std::vector<std::uint32_t> tables_;
};

namespace detail {

// Four weights of `w` as the high and the low halves, four signed bytes each.
inline void split_weights(const std::int16_t* w, std::uint32_t& high, std::uint32_t& low) {
  high = low = 0;
  for (int k = 0; k < 4; ++k) {
    int h = (w[k] + 64) >> 7;
    high |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(h)) << (8 * k);
    low |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(w[k] - h * 128)) << (8 * k);
  }
}

// The weights of samples k and k + 1 as one pair of 16-bit numbers, in units of 2^-14.
inline int weight_pair(const std::int16_t* w, int k) {
  int pair = 0;
  std::int16_t both[2] = {static_cast<std::int16_t>(2 * w[k]),
                          static_cast<std::int16_t>(2 * w[k + 1])};
  std::memcpy(&pair, both, sizeof pair);
  return pair;
}

}  // namespace detail

#if defined(__AVX512VBMI__) && defined(__AVX512VNNI__)

// One vector holds 16 outputs of any channel, in the order they are stored. For each, a permutation
// fetches the bytes of four taps from a window of 64, which covers 2.8 source pixels to an output
// pixel of three channels.
inline constexpr const char* instruction_set = "avx512";

inline void horizontal::prepare() {
  int lanes = along_->outputs * channels_;
  int vectors = (lanes + 15) / 16;
  groups_ = along_->taps / 4;
  base_.resize(static_cast<std::size_t>(vectors));
  tables_.resize(static_cast<std::size_t>(vectors * groups_) * 48);
  fits_ = true;
  for (int v = 0; v < vectors; ++v) {
    int begin = 16 * v / channels_, end = std::min(16 * v + 15, lanes - 1) / channels_;
    int base = along_->first[static_cast<std::size_t>(begin)];
    for (int i = begin; i <= end; ++i)
      base = std::min(base, along_->first[static_cast<std::size_t>(i)]);
    base_[static_cast<std::size_t>(v)] = (base - row_begin_) * channels_;
    for (int i = begin; i <= end; ++i) {
      fits_ = fits_ && (along_->end_of(i) - base) * channels_ <= 64;
      int start = (along_->first[static_cast<std::size_t>(i)] - base) * channels_;
      for (int g = 0; g < groups_; ++g) {
        std::uint32_t high, low;
        detail::split_weights(&along_->weights[static_cast<std::size_t>(i * along_->taps + 4 * g)],
                              high, low);
        std::uint32_t* table = &tables_[static_cast<std::size_t>(v * groups_ + g) * 48];
        for (int channel = 0; channel < channels_; ++channel) {
          int lane = i * channels_ + channel - 16 * v;
          if (lane < 0 || lane > 15) continue;
          auto at = static_cast<std::uint32_t>(start + 4 * g * channels_ + channel);
          auto step = static_cast<std::uint32_t>(channels_);
          // A tap that weighs nothing may lie outside of the window: the index wraps.
          std::uint32_t index = 0;
          for (std::uint32_t k = 0; k < 4; ++k) index |= ((at + k * step) & 63) << (8 * k);
          table[lane] = index;
          table[16 + lane] = high;
          table[32 + lane] = low;
        }
      }
    }
  }
}

inline void horizontal::run(const std::uint8_t* row, std::int16_t* out) const {
  if (!fits_) return run_plain(row, out);
  const std::uint32_t* table = tables_.data();
  const __m512i half = _mm512_set1_epi32(64);
  for (int base : base_) {
    __m512i window = _mm512_loadu_si512(row + base);
    __m512i high = _mm512_setzero_si512(), low = half;
    for (int g = 0; g < groups_; ++g, table += 48) {
      __m512i bytes = _mm512_permutexvar_epi8(_mm512_loadu_si512(table), window);
      high = _mm512_dpbusd_epi32(high, bytes, _mm512_loadu_si512(table + 16));
      low = _mm512_dpbusd_epi32(low, bytes, _mm512_loadu_si512(table + 32));
    }
    __m512i sum = _mm512_srai_epi32(_mm512_add_epi32(_mm512_slli_epi32(high, 7), low), 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_cvtepi32_epi16(sum));
    out += 16;
  }
}

#elif defined(__AVX2__)

// Half a vector holds one pixel of three channels, or four outputs of one channel.
inline constexpr const char* instruction_set = "avx2";

inline void horizontal::prepare() {
  groups_ = along_->taps / 4;
  int per_half = channels_ == 3 ? 1 : 4;
  int halves = (along_->outputs + per_half - 1) / per_half + 1;
  base_.assign(static_cast<std::size_t>(halves), 0);
  tables_.assign(static_cast<std::size_t>(halves * groups_) * 12, 0);
  fits_ = true;
  for (int h = 0; h < halves; ++h) {
    int begin = h * per_half, end = std::min(begin + per_half, along_->outputs);
    if (begin >= end) continue;
    int base = along_->first[static_cast<std::size_t>(begin)];
    for (int i = begin; i < end; ++i)
      base = std::min(base, along_->first[static_cast<std::size_t>(i)]);
    base_[static_cast<std::size_t>(h)] = (base - row_begin_) * channels_;
    for (int i = begin; i < end; ++i) {
      int start = along_->first[static_cast<std::size_t>(i)] - base;
      fits_ = fits_ && (channels_ == 3 || along_->end_of(i) - base <= 16);
      for (int g = 0; g < groups_; ++g) {
        std::uint32_t high, low;
        detail::split_weights(&along_->weights[static_cast<std::size_t>(i * along_->taps + 4 * g)],
                              high, low);
        std::uint32_t* table =
            &tables_[static_cast<std::size_t>((h / 2 * groups_ + g) * 24 + h % 2 * 4)];
        for (int lane = channels_ == 3 ? 0 : i - begin, n = channels_ == 3 ? 3 : lane + 1; lane < n;
             ++lane) {
          auto at = static_cast<std::uint32_t>(channels_ == 3 ? lane : start + 4 * g);
          std::uint32_t index = 0;
          for (std::uint32_t k = 0; k < 4; ++k)
            index |= ((at + k * static_cast<std::uint32_t>(channels_)) & 15) << (8 * k);
          table[lane] = index;
          table[8 + lane] = high;
          table[16 + lane] = low;
        }
      }
    }
  }
}

inline void horizontal::run(const std::uint8_t* row, std::int16_t* out) const {
  if (!fits_) return run_plain(row, out);
  const auto* table = reinterpret_cast<const __m256i*>(tables_.data());
  const __m256i half = _mm256_set1_epi32(64), ones = _mm256_set1_epi16(1),
                scale = _mm256_set1_epi16(128);
  // One channel's window holds the bytes of all groups.
  const int group_bytes = channels_ == 3 ? 12 : 0;
  for (std::size_t h = 0; h + 1 < base_.size(); h += 2) {
    __m256i sum = half;
    for (int g = 0; g < groups_; ++g, table += 3) {
      auto load = [&](std::size_t which) {
        return _mm_loadu_si128(
            reinterpret_cast<const __m128i*>(row + base_[which] + group_bytes * g));
      };
      __m256i window = _mm256_inserti128_si256(_mm256_castsi128_si256(load(h)), load(h + 1), 1);
      __m256i bytes = _mm256_shuffle_epi8(window, _mm256_loadu_si256(table));
      __m256i high = _mm256_maddubs_epi16(bytes, _mm256_loadu_si256(table + 1));
      __m256i low = _mm256_maddubs_epi16(bytes, _mm256_loadu_si256(table + 2));
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(high, scale));
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(low, ones));
    }
    sum = _mm256_packs_epi32(_mm256_srai_epi32(sum, 7), sum);
    int step = channels_ == 3 ? 3 : 4;
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm256_castsi256_si128(sum));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out + step), _mm256_extracti128_si256(sum, 1));
    out += 2 * step;
  }
}

#else

inline constexpr const char* instruction_set = "plain";

inline void horizontal::prepare() {}
inline void horizontal::run(const std::uint8_t* row, std::int16_t* out) const {
  run_plain(row, out);
}

#endif

// Sums rows of 16-bit samples with the weights `w` and hands each vector of 16 (or 32) sums, of
// 20 fractional bits before `shift`, to memory as bytes (shift 20) or 16-bit samples (shift 16).
template <int Shift, class Out>
void vertical(const std::int16_t* const* rows, const std::int16_t* w, int count, Out* out,
              int samples) {
  static_assert((Shift == 20 && sizeof(Out) == 1) || (Shift == 16 && sizeof(Out) == 2));
  int x = 0;
#if defined(__AVX2__)
  int pairs = (count + 1) / 2;
#if defined(__AVX512BW__) && defined(__AVX512VNNI__)
  const __m512i half = _mm512_set1_epi32(1 << (Shift - 1));
  for (; x < samples; x += 32) {
    __m512i even = half, odd = half;
    for (int k = 0; k < pairs; ++k) {
      __m512i a = _mm512_loadu_si512(rows[2 * k] + x), b = _mm512_loadu_si512(rows[2 * k + 1] + x);
      __m512i weight = _mm512_set1_epi32(detail::weight_pair(w, 2 * k));
      even = _mm512_dpwssd_epi32(even, _mm512_unpacklo_epi16(a, b), weight);
      odd = _mm512_dpwssd_epi32(odd, _mm512_unpackhi_epi16(a, b), weight);
    }
    __m512i sum = _mm512_packs_epi32(_mm512_srai_epi32(even, Shift), _mm512_srai_epi32(odd, Shift));
    if constexpr (Shift == 20)
      _mm256_mask_storeu_epi8(out + x,
                              _cvtu32_mask32(samples - x >= 32 ? ~0U : (1U << (samples - x)) - 1),
                              _mm512_cvtepi16_epi8(sum));
    else
      _mm512_storeu_si512(out + x, sum);
  }
#else
  const __m256i half = _mm256_set1_epi32(1 << (Shift - 1));
  for (; x + 16 <= samples || (Shift == 16 && x < samples); x += 16) {
    __m256i even = half, odd = half;
    for (int k = 0; k < pairs; ++k) {
      auto load = [&](int row) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[row] + x));
      };
      __m256i a = load(2 * k), b = load(2 * k + 1);
      __m256i weight = _mm256_set1_epi32(detail::weight_pair(w, 2 * k));
      even = _mm256_add_epi32(even, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), weight));
      odd = _mm256_add_epi32(odd, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), weight));
    }
    __m256i sum = _mm256_packs_epi32(_mm256_srai_epi32(even, Shift), _mm256_srai_epi32(odd, Shift));
    if constexpr (Shift == 20)
      _mm_storeu_si128(
          reinterpret_cast<__m128i*>(out + x),
          _mm_packus_epi16(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1)));
    else
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + x), sum);
  }
#endif
#endif
  for (; x < samples; ++x) {
    int sum = 1 << (Shift - 1);
    for (int k = 0; k < count; ++k) sum += rows[k][x] * (2 * w[k]);
    out[x] = static_cast<Out>(sum >> Shift);
  }
}

// One image, or one plane of it, on its way to its new size: `put` every source row from
// `first_row` on, then `take` the output rows that are ready. Up to 16 rows may be put before they
// are taken.
class row_resizer {
 public:
  // The rows put begin at sample `row_begin` of the image.
  void begin(const axis& across, const axis& down, int channels, int row_begin, int first_row) {
    across_.set(across, channels, row_begin);
    down_ = &down;
    samples_ = across.outputs * channels;
    stride_ = static_cast<std::size_t>(samples_) + row_slack;
    ring_rows_ = 32;
    while (ring_rows_ < down.taps + 17) ring_rows_ *= 2;
    ring_.resize(stride_ * static_cast<std::size_t>(ring_rows_));
    next_row_ = first_row;
    needed_ = down.begin();
    end_ = down.end();
    next_output_ = 0;
  }

  void put(const std::uint8_t* row) {
    if (next_row_ >= needed_ && next_row_ < end_) across_.run(row, slot(next_row_));
    ++next_row_;
  }

  bool ready() const {
    return next_output_ < down_->outputs && down_->end_of(next_output_) <= next_row_;
  }
  bool finished() const { return next_output_ == down_->outputs; }
  int next_output() const { return next_output_; }

  template <int Shift, class Out>
  void take(Out* out) {
    int first = down_->first[static_cast<std::size_t>(next_output_)];
    int count = down_->end_of(next_output_) - first;
    const std::int16_t* rows[64];
    // A row more than needed, weighing nothing, where rows are taken in pairs.
    for (int k = 0; k <= count; ++k) rows[k] = slot(std::min(first + k, next_row_ - 1));
    vertical<Shift>(rows, &down_->weights[static_cast<std::size_t>(next_output_ * down_->taps)],
                    count, out, samples_);
    ++next_output_;
  }

 private:
  std::int16_t* slot(int row) {
    return ring_.data() + static_cast<std::size_t>(row & (ring_rows_ - 1)) * stride_;
  }

  horizontal across_;
  const axis* down_ = nullptr;
  int samples_ = 0;
  std::size_t stride_ = 0;
  int ring_rows_ = 0;
  std::vector<std::int16_t> ring_;
  int next_row_ = 0, needed_ = 0, end_ = 0;
  int next_output_ = 0;
};

}  // namespace bench
