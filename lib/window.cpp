#include <lade/error.hpp>
#include <lade/window.hpp>

namespace lade {

window_stage::window_stage(std::size_t size, const window_options& options)
    : size_(size), step_(options.step) {
  if (size == 0) throw error(errc::invalid_argument, "window", "a size of 0");
  if (options.step == 0) throw error(errc::invalid_argument, "window", "a step of 0");
}

void window_stage::require_no_copies() const {
  if (step_ < size_)
    throw error(errc::invalid_argument, "window",
                "items that cannot be copied cannot be in several windows: let it step by their "
                "size");
}

}  // namespace lade
