// A model that is small enough to be read: softmax regression on drawn digits.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "drawn_digit.hpp"

class linear_model {
 public:
  static constexpr std::size_t classes = 10;
  static constexpr std::size_t inputs = drawn_digit::width * drawn_digit::height;
  static constexpr std::size_t row = inputs + 1;  // with the bias

  // The sums over some samples that a step needs: the gradient, the loss, the number of samples.
  // The sums of several ranks are added.
  using sums = std::array<double, classes * row + 2>;
  static double loss_in(const sums& all) { return all[classes * row]; }
  static double samples_in(const sums& all) { return all[classes * row + 1]; }

  std::uint64_t steps() const noexcept { return steps_; }

  void add_to(sums& all, const drawn_digit& digit) const {
    auto likely = probabilities(digit);
    all[classes * row] -= std::log(likely[digit.label]);
    all[classes * row + 1] += 1;
    likely[digit.label] -= 1;
    for (std::size_t c = 0; c < classes; ++c) {
      auto* gradient = &all[c * row];
      for (std::size_t i = 0; i < inputs; ++i) gradient[i] += likely[c] * digit.pixels[i];
      gradient[inputs] += likely[c];
    }
  }

  // A small batch makes a small step.
  void step(const sums& all) {
    for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] -= 0.05 * all[i];
    ++steps_;
  }

  std::size_t classify(const drawn_digit& digit) const {
    auto likely = probabilities(digit);
    return static_cast<std::size_t>(std::ranges::max_element(likely) - likely.begin());
  }

 private:
  std::array<double, classes> probabilities(const drawn_digit& digit) const {
    std::array<double, classes> result;
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      auto* weights = &weights_[c * row];
      auto score = weights[inputs];
      for (std::size_t i = 0; i < inputs; ++i) score += weights[i] * digit.pixels[i];
      sum += result[c] = std::exp(score);
    }
    for (auto& each : result) each /= sum;
    return result;
  }

  std::array<double, classes * row> weights_ = {};
  std::uint64_t steps_ = 0;
};
