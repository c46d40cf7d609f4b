// Pipelines of any length on stacks of any size. Stages that work in place open, call and destroy
// each other recursively; every so many of them the chain is broken, and goes on with an empty
// stack.

#pragma once

#include <lade/async_generator.hpp>

#include <functional>

namespace lade::detail {

// How many stages may open, call and destroy each other recursively.
inline constexpr unsigned longest_chain = 256;

// Breaks a chain before the stages that `open()` opens. Throws what it throws.
generator break_chain(const std::function<generator()>& open);

}  // namespace lade::detail
