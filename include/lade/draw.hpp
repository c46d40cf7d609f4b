// draw: items at random, by weight, with replacement.

#pragma once

#include <lade/detail/common/alias_table.hpp>
#include <lade/detail/pipeline/index.hpp>
#include <lade/error.hpp>
#include <lade/pipeline.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace lade {

// With GCC 12, not to be written in braces inside of a co_await expression: it holds more than
// numbers.
struct draw_options {
  std::vector<double> weights = {};         // one for each item; together more than 0
  std::optional<std::uint64_t> count = {};  // of draws; as many as there are weights if not given
  std::uint64_t seed = 0;
};

class draw_stage {
 public:
  explicit draw_stage(const draw_options& options)
      : step_{std::make_shared<const detail::alias_table>(options.weights, "draw"),
              options.count.value_or(options.weights.size()), options.seed} {}

  template <class T>
  pipeline<T> attach(const pipeline<T>& in) const {
    if (auto drawn = in.then(step_)) return *drawn;
    throw error(errc::invalid_argument, "draw",
                "only items that are reached by index can be drawn: put it at a list");
  }

 private:
  detail::draw_step step_;
};

// Draws `count` items of a source that is reached by index, each with a chance in proportion to its
// weight, as often as it is drawn. Which ones depends on the seed, the run's epoch and the number
// of the draw alone: shards of it are parts of the same draws. A draw takes the same time however
// many items there are; the weights take 16 bytes each, once for all copies of the pipeline.
//
// Throws error(invalid_argument) for a weight that is negative or no finite number, if none is more
// than 0, and behind anything but a source that is reached by index; a run throws it if the source
// has another number of items.
inline draw_stage draw(const draw_options& options) { return draw_stage(options); }

}  // namespace lade
