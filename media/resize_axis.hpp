// The source samples and weights of a resize along one axis.

#pragma once

#include <cstdint>
#include <vector>

namespace lade::media {

// The part of an axis to resize: `length` samples from `begin`, both possibly fractional. Only
// samples in [low, high) contribute. `blur`: the half width, in samples, of a triangle that smooths
// the result in addition to antialiasing.
struct axis_range {
  double begin = 0;
  double length = 0;
  int low = 0;
  int high = 0;
  double blur = 0;

  bool operator==(const axis_range&) const = default;
};

// An axis with one sample per `step` samples of a finer axis. Its first sample is at the centre of
// the first `step` samples, or `offset` fine samples before it.
struct coarse_axis {
  int size = 0;
  double step = 1;
  double blur = 0;  // see axis_range
  double offset = 0;
};

// Converts a part of the finer axis to the coarser one.
axis_range coarser(const axis_range& range, const coarse_axis& axis) noexcept;

// The weights of an antialiased resize along one axis. Each output sample is weighted by a triangle
// over the source. It is as wide as two output samples when shrinking, and as two source samples
// when growing. The weights are Pillow's BILINEAR coefficients (libImaging/Resample.c,
// precompute_coeffs) in fixed point. plan() reuses the memory.
class resize_axis {
 public:
  // Weights are multiples of 2^-precision. The weights of an output sample add up to exactly 1.
  static constexpr int precision = 14;

  // Up to this many samples after the last needed one may be read, with weights of 0.
  static constexpr int row_padding = 64;

  // Plans an output of `count` samples. `mirrored`: from last to first.
  void plan(const axis_range& from, int count, bool mirrored = false);

  int count() const noexcept { return static_cast<int>(offsets_.size()); }
  int first() const noexcept { return first_; }  // the first source sample of any output
  int last() const noexcept { return last_; }    // one past the last
  int widest() const noexcept { return widest_; }

  // Output sample i is the sum over k < taps(i) of weights(i)[k] * source[start(i) + k]. If taps(i)
  // is odd, a weight of 0 follows.
  int start(int i) const noexcept { return first_ + offset(i) + lead(i); }
  int taps(int i) const noexcept { return taps_[static_cast<std::size_t>(i)]; }
  const std::int16_t* weights(int i) const noexcept { return weights_.data() + first_weight(i); }

  // The same for vector code, with the same number of samples per output: the sum over k < stride
  // of table[i * stride + k] * source[first() + offsets[i] + k]. The stride is four, eight or a
  // multiple of sixteen. Weights of 0 follow the weights of an output. They precede them if the
  // samples would otherwise extend past the padding.
  int stride() const noexcept { return stride_; }
  const int* offsets() const noexcept { return offsets_.data(); }
  const std::int16_t* table() const noexcept { return weights_.data(); }

 private:
  int offset(int i) const noexcept { return offsets_[static_cast<std::size_t>(i)]; }
  int lead(int i) const noexcept { return leads_[static_cast<std::size_t>(i)]; }
  std::size_t first_weight(int i) const noexcept {
    return std::size_t(i) * std::size_t(stride_) + std::size_t(lead(i));
  }
  void plan_samples(int i, double centre, double support, const axis_range& from);
  void keep_within_padding();
  void plan_weights(int i, double centre, double support);

  int first_ = 0;
  int last_ = 0;
  int widest_ = 0;
  int stride_ = 0;
  std::vector<int> offsets_;
  std::vector<int> taps_;
  std::vector<int> leads_;  // weights of 0 before the first one
  std::vector<std::int16_t> weights_;
  std::vector<double> triangle_;
};

// The span of the source samples of neighbouring outputs: of sixteen outputs within 32 or 64
// samples, or of eight outputs within 64.
enum class block_span : std::uint8_t { sixteen_in_32, sixteen_in_64, eight_in_64 };

// The same weights for sixteen adjacent outputs, for vector code that permutes. Block b has the
// outputs from 16 * b. The samples of its first eight outputs start at bases(b)[0], the others' at
// bases(b)[1]. Both bases are equal unless `span` is eight_in_64.
//
// Samples are used in pairs. pairs(b)[j] is the index of output j's first pair, counted from its
// base. weights(b)[32 * k + 2 * j] and the next one are the weights of its k-th pair.
class resize_blocks {
 public:
  static constexpr int outputs = 16;

  // Returns false if the samples of eight neighbouring outputs span more than 64.
  bool plan(const resize_axis& axis);

  int count() const noexcept { return static_cast<int>(bases_.size()) / 2; }
  int pairs() const noexcept { return pair_count_; }  // per output
  block_span span() const noexcept { return span_; }
  const int* bases(int b) const noexcept { return bases_.data() + 2 * b; }
  const std::int32_t* pairs(int b) const noexcept { return pairs_.data() + b * outputs; }
  const std::int16_t* weights(int b) const noexcept {
    return weights_.data() + b * pair_count_ * 2 * outputs;
  }

 private:
  void plan_outputs(const resize_axis& axis, int begin, int end);
  void plan_output(const resize_axis& axis, int i, int base);

  int pair_count_ = 0;
  block_span span_ = block_span::sixteen_in_32;
  std::vector<int> bases_;
  std::vector<std::int32_t> pairs_;
  std::vector<std::int16_t> weights_;
};

}  // namespace lade::media
