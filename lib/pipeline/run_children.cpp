#include <lade/detail/pipeline/run_children.hpp>

#include <algorithm>
#include <utility>

namespace lade::detail {

void run_children::start(std::shared_ptr<const void> stage, const context& execution, task<> work) {
  use(*execution.home);
  scope_.start_in({std::move(stage), &execution}, std::move(work));
}

void run_children::use(executor& home) {
  std::lock_guard lock(mutex_);
  if (std::ranges::none_of(used_, [&](const executor_use& each) { return each.is_of(home); }))
    used_.emplace_back(home);
}

void run_children::ended() noexcept {
  std::lock_guard lock(mutex_);
  used_.clear();
}

}  // namespace lade::detail
