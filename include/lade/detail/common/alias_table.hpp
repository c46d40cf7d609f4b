// alias_table: draws indices by weight in constant time.

#pragma once

#include <lade/random.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lade::detail {

// Walker's alias method, built as Vose does (A Linear Algorithm For Generating Random Numbers With
// a Given Distribution, 1991). Immutable; any thread.
class alias_table {
 public:
  // Throws error(invalid_argument) for invalid weights: see require_weights(). `doing`: the
  // operation, for the error.
  alias_table(const std::vector<double>& weights, const char* doing);

  std::size_t size() const noexcept { return columns_.size(); }

  // Equal for equal weights. Other weights have another digest, except with negligible probability.
  std::uint64_t digest() const noexcept { return digest_; }

  // Returns an index with a probability proportional to its weight; never one of weight 0.
  std::uint64_t pick(random draw) const noexcept {
    auto drawn = draw.below(columns_.size());
    auto& found = columns_[drawn];
    return draw.uniform() < found.share ? drawn : found.other;
  }

 private:
  // All columns are drawn with the same probability. A column stands for its own index below
  // `share`, and for `other` above it.
  struct column {
    double share;
    std::uint64_t other;
  };

  std::vector<column> columns_;
  std::uint64_t digest_ = 0;
};

}  // namespace lade::detail
