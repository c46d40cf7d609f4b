// What a run does beside its work, until the consumer has what it will get.

#pragma once

#include <lade/detail/run_state.hpp>

#include <memory>

namespace lade::detail {

// It tells of itself. What is left is told before its children have ended. For the child that
// begins the run.
void begin_telling(const std::shared_ptr<run_state>& run);

// It looks at its stages and tunes them. For every stage that may be tuned.
void begin_tuning(const std::shared_ptr<run_state>& run);

}  // namespace lade::detail
