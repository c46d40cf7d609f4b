// promise_base: the state that a task or generator inherits from its awaiter. completion: the
// callback of a finished task.

#pragma once

#include <lade/context.hpp>
#include <lade/lineage.hpp>

#include <concepts>
#include <coroutine>

namespace lade::detail {

// The part of a promise that awaitables access.
class promise_base {
 public:
  const lade::context* context = nullptr;

  // Collects the lineage of the items that the coroutine consumes; null: it is not collected.
  lineage* consumed = nullptr;

  void inherit(const promise_base& parent) noexcept {
    context = parent.context;
    consumed = parent.consumed;
  }
};

// The promise_base of a coroutine; null for a coroutine that is not lade's.
template <class Promise>
promise_base* base_of(std::coroutine_handle<Promise> coroutine) noexcept {
  if constexpr (std::derived_from<Promise, promise_base>)
    return &coroutine.promise();
  else
    return nullptr;
}

// Called once when a task has finished, unless it finished within the call that started it.
struct completion {
  void (*finished)(completion&) noexcept;
};

}  // namespace lade::detail
