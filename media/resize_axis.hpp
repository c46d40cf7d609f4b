// Where one axis of a resize takes each output sample from, and with which weights.

#pragma once

#include <cstdint>
#include <vector>

namespace lade::media {

// The part of one axis that is resized: `length` samples from `begin`, both possibly fractional.
// Only samples in [low, high) contribute. `blur` is the half width, in samples, of a triangle that
// the result is smoothed with beyond antialiasing.
struct axis_range {
  double begin = 0;
  double length = 0;
  int low = 0;
  int high = 0;
  double blur = 0;

  bool operator==(const axis_range&) const = default;
};

// An axis that has one sample for each `step` of another's. Its first sample lies in the middle of
// those, or `offset` samples of the other axis before that.
struct coarse_axis {
  int size = 0;
  double step = 1;
  double blur = 0;  // see axis_range
  double offset = 0;
};

// The same part of a coarser axis.
axis_range coarser(const axis_range& range, const coarse_axis& axis) noexcept;

// The weights of an antialiased resize along one axis: a triangle over each output sample, as wide
// as two output samples when shrinking and as two source samples when growing. These are Pillow's
// BILINEAR coefficients (libImaging/Resample.c, precompute_coeffs) in fixed point. Refilled for
// every image: its memory is reused.
class resize_axis {
 public:
  // Weights are multiples of 2^-precision; those of one output sample add up to exactly 1.
  static constexpr int precision = 14;

  // How many samples behind those that any output needs may be read, with weights of 0.
  static constexpr int row_padding = 64;

  // The samples of an output of `count`, from first to last or, mirrored, from last to first.
  void plan(const axis_range& from, int count, bool mirrored = false);

  int count() const noexcept { return static_cast<int>(offsets_.size()); }
  int first() const noexcept { return first_; }  // the first source sample that any output needs
  int last() const noexcept { return last_; }    // one behind the last
  int widest() const noexcept { return widest_; }

  // Output sample i is the sum over k < taps(i) of weights(i)[k] * source[start(i) + k]. If taps(i)
  // is odd, a 0 is behind them.
  int start(int i) const noexcept { return first_ + offset(i) + lead(i); }
  int taps(int i) const noexcept { return taps_[static_cast<std::size_t>(i)]; }
  const std::int16_t* weights(int i) const noexcept { return weights_.data() + first_weight(i); }

  // The same for vector code, which takes as many samples for each output: the sum over k < stride
  // of table[i * stride + k] * source[first() + offsets[i] + k]. The stride is four, eight or a
  // multiple of sixteen. Weights of 0 are behind those of the output, and before them where its
  // samples would reach beyond the padding otherwise.
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
  std::vector<int> leads_;  // weights of 0 before the first
  std::vector<std::int16_t> weights_;
  std::vector<double> triangle_;
};

// How far apart the source samples of neighbouring outputs are: those of sixteen outputs are among
// 32 samples, those of sixteen among 64, or those of eight among 64.
enum class block_span : std::uint8_t { sixteen_in_32, sixteen_in_64, eight_in_64 };

// The same weights for sixteen outputs side by side, as permuting vector code wants them. Block b
// holds the outputs from 16 * b. The samples of the first eight are among those from bases(b)[0],
// the samples of the others among those from bases(b)[1]: the same base, unless `span` is
// eight_in_64. Samples are taken in pairs. pairs(b)[j] is the first pair of output j, counted from
// its base, and weights(b)[32 * k + 2 * j] and the one behind it are the weights of its k-th pair.
class resize_blocks {
 public:
  static constexpr int outputs = 16;

  // False when the samples of some eight outputs are further apart than 64.
  bool plan(const resize_axis& axis);

  int count() const noexcept { return static_cast<int>(bases_.size()) / 2; }
  int pairs() const noexcept { return pair_count_; }  // of each output
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
