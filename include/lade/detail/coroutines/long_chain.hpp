// Bounds the stack depth of long pipelines. Inline stages open, call and destroy each other
// recursively. So a long chain of them is divided into parts. Each part starts on an empty stack.

#pragma once

#include <lade/async_generator.hpp>

#include <functional>

namespace lade::detail {

// The largest number of stages that recurse on one stack.
inline constexpr unsigned longest_chain = 256;

// Begins a new part of the chain with the stages that `open()` opens. Calls `open()` on a thread
// with an empty stack, waits for it, and rethrows its exception. The result forwards the items: the
// executor of the consumer, if it has one, runs each part in a separate job.
generator break_chain(const std::function<generator()>& open);

}  // namespace lade::detail
