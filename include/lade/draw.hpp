// draw: draws items at random, by weight, with replacement.

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

// With GCC 12, do not write these options in braces inside a co_await expression: they hold more
// than numbers.
struct draw_options {
  std::vector<double> weights = {};         // one per item, 0 or more; their sum more than 0
  std::optional<std::uint64_t> count = {};  // number of draws; that of the weights if not given
  std::uint64_t seed = 0;
};

class draw_stage {
 public:
  explicit draw_stage(const draw_options& options)
      : step_(detail::order_step::draw(
            std::make_shared<const detail::alias_table>(options.weights, "draw"),
            options.count.value_or(options.weights.size()), options.seed)) {}

  template <class T>
  pipeline<T> attach(const pipeline<T>& in) const {
    if (auto drawn = in.then(step_)) return *drawn;
    throw error(errc::invalid_argument, "draw",
                "only items that are reached by index can be drawn: put it at a list");
  }

 private:
  detail::order_step step_;
};

// Draws `count` items of a source whose items are reached by index (see from.hpp), with
// replacement. The probability of an item is proportional to its weight. A draw depends only on the
// seed, on the run's epoch and on the number of the draw. So shards behind it are parts of the same
// draws.
//
// Cost: the time of a draw does not depend on the number of items. The weights take 16 bytes each,
// shared by all copies of the pipeline.
//
// Throws error(invalid_argument) if a weight is negative or not finite, or if no weight is more
// than 0. Throws it also if the items are not reached by index. A run throws it if the number of
// items differs from the number of weights.
inline draw_stage draw(const draw_options& options) { return draw_stage(options); }

}  // namespace lade
