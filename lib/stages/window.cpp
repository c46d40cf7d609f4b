#include <lade/error.hpp>
#include <lade/support/require.hpp>
#include <lade/window.hpp>

namespace lade {

window_stage::window_stage(std::size_t size, const window_options& options)
    : size_(size), step_(options.step) {
  constexpr support::bounds allowed{.least = 1, .most = support::most_in_batch};
  support::require_count("window", "size", size, allowed);
  support::require_count("window", "step", step_, allowed);
}

detail::node_facts window_stage::facts(detail::node_ptr in) const {
  auto of_stage = detail::node_facts::behind(std::move(in), "window")
                      .yielding(cardinality::group)
                      .grouping(size_, step_)
                      .holding(size_)
                      .with("size", size_)
                      .with("step", step_);
  if (step_ >= size_) return std::move(of_stage).mixing_parts("window");
  return std::move(of_stage).refusing_state(
      "window puts an item into several windows: let it step by their size");
}

void window_stage::require_no_copies() const {
  if (step_ < size_)
    throw error(errc::invalid_argument, "window",
                "items that cannot be copied cannot be in several windows: let it step by their "
                "size");
}

}  // namespace lade
