// Draws by weight, each in the same time however many weights there are.

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
  // Throws error(invalid_argument) that names the doing for weights that are none.
  alias_table(const std::vector<double>& weights, const char* doing);

  std::size_t size() const noexcept { return columns_.size(); }

  // The same number for the same weights; as good as never for others.
  std::uint64_t digest() const noexcept { return digest_; }

  // The index of a weight, with a chance in proportion to it; never of one that is 0.
  std::uint64_t pick(random draw) const noexcept {
    auto drawn = draw.below(columns_.size());
    auto& found = columns_[drawn];
    return draw.uniform() < found.share ? drawn : found.other;
  }

 private:
  // All columns are drawn equally often. One stands for its own weight and, above the share of
  // that, for another.
  struct column {
    double share;
    std::uint64_t other;
  };

  std::vector<column> columns_;
  std::uint64_t digest_ = 0;
};

}  // namespace lade::detail
