// What all coroutines of lade have in common: what they inherit from their awaiter, and how a
// child tells that it has finished.

#pragma once

#include <lade/context.hpp>
#include <lade/lineage.hpp>

#include <concepts>
#include <coroutine>

namespace lade::detail {

// The part of a promise that awaitables work with.
class promise_base {
 public:
  const lade::context* context = nullptr;

  // Where the lineage of what this coroutine consumes is gathered; may be null.
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

// Told when a task has finished.
struct completion {
  void (*finished)(completion&) noexcept;
};

}  // namespace lade::detail
