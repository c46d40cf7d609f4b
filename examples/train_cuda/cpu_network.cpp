#include "network.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

namespace {

float scaled(std::uint8_t pixel) { return (static_cast<float>(pixel) - 128.0f) / 128.0f; }

class cpu_network final : public network {
 public:
  cpu_network() : first_(hidden * (inputs + 1)), second_(classes * (hidden + 1)) {
    for (std::size_t i = 0; i < first_.size(); ++i) first_[i] = first_weight(i);
    for (std::size_t i = 0; i < second_.size(); ++i) second_[i] = first_weight(i + first_.size());
  }

  void step(const std::uint8_t* images, const std::int64_t* labels, std::size_t size) override {
    std::vector<float> first_change(first_.size());
    std::vector<float> second_change(second_.size());
    for (std::size_t s = 0; s < size; ++s)
      learn(images + s * inputs, static_cast<std::size_t>(labels[s]), first_change, second_change);
    auto rate = learning_rate / static_cast<float>(size);
    for (std::size_t i = 0; i < first_.size(); ++i) first_[i] -= rate * first_change[i];
    for (std::size_t i = 0; i < second_.size(); ++i) second_[i] -= rate * second_change[i];
    totals_.images += static_cast<double>(size);
  }

  void repeat(const std::uint8_t* images, std::size_t size) override {
    for (std::size_t s = 0; s < size; ++s)
      for (float unit : activate(images + s * inputs)) repeated_ = unit;
  }

  totals take_totals() override { return std::exchange(totals_, {}); }

 private:
  std::array<float, hidden> activate(const std::uint8_t* image) const {
    std::array<float, hidden> units;
    for (std::size_t h = 0; h < hidden; ++h) {
      auto* weights = &first_[h * (inputs + 1)];
      auto sum = weights[inputs];
      for (std::size_t i = 0; i < inputs; ++i) sum += weights[i] * scaled(image[i]);
      units[h] = std::max(sum, 0.0f);
    }
    return units;
  }

  void learn(const std::uint8_t* image, std::size_t label, std::vector<float>& first_change,
             std::vector<float>& second_change) {
    auto units = activate(image);
    auto error = errors(units, label);
    for (std::size_t h = 0; h < hidden; ++h) {
      float back = 0;
      for (std::size_t c = 0; c < classes; ++c) {
        back += second_[c * (hidden + 1) + h] * error[c];
        second_change[c * (hidden + 1) + h] += error[c] * units[h];
      }
      if (units[h] <= 0) continue;
      auto* change = &first_change[h * (inputs + 1)];
      for (std::size_t i = 0; i < inputs; ++i) change[i] += back * scaled(image[i]);
      change[inputs] += back;
    }
    for (std::size_t c = 0; c < classes; ++c) second_change[c * (hidden + 1) + hidden] += error[c];
  }

  // The derivatives of the loss by the outputs: the softmax, less one at the label.
  std::array<float, classes> errors(const std::array<float, hidden>& units, std::size_t label) {
    std::array<float, classes> outputs;
    for (std::size_t c = 0; c < classes; ++c) {
      auto* weights = &second_[c * (hidden + 1)];
      outputs[c] = weights[hidden];
      for (std::size_t h = 0; h < hidden; ++h) outputs[c] += weights[h] * units[h];
    }
    auto most = std::max_element(outputs.begin(), outputs.end());
    totals_.right += static_cast<std::size_t>(most - outputs.begin()) == label;
    auto highest = *most;
    float sum = 0;
    for (auto& each : outputs) sum += each = std::exp(each - highest);
    totals_.loss -= std::log(outputs[label] / sum);
    for (auto& each : outputs) each /= sum;
    outputs[label] -= 1;
    return outputs;
  }

  std::vector<float> first_;   // [hidden, inputs + 1], the bias last
  std::vector<float> second_;  // [classes, hidden + 1]
  totals totals_;
  volatile float repeated_ = 0;  // so that the compiler leaves no work out
};

}  // namespace

std::unique_ptr<network> make_cpu_network() { return std::make_unique<cpu_network>(); }
