// What all coroutines of lade have in common: what they inherit from their awaiter, and how a
// child tells that it has finished.

#pragma once

#include <lade/detail/executor.hpp>
#include <lade/lineage.hpp>

#include <concepts>
#include <coroutine>
#include <stop_token>
#include <type_traits>

namespace lade {

class runtime;

namespace detail {

class run_state;
class stage_counters;

// What a coroutine inherits from the coroutine that awaits it. It outlives all who point to it:
// its owner (sync_wait, scope, a stage of a run) waits for them.
struct context {
  lade::runtime* runtime = nullptr;
  executor* home = nullptr;  // where its coroutines resume; null: where they are completed
  std::stop_token stop;
  run_state* run = nullptr;
  stage_counters* stage = nullptr;
};

// Resumes a coroutine of this context, where it belongs.
inline void resume_at_home(std::coroutine_handle<> coroutine, const context* where) {
  if (where && where->home)
    where->home->resume(coroutine);
  else
    coroutine.resume();
}

// The part of a promise that awaitables work with.
class promise_base {
 public:
  const lade::detail::context* context = nullptr;

  // Where the lineage of what this coroutine consumes is gathered; may be null.
  lineage* consumed = nullptr;

  // Whether the coroutine has been suspended since its awaiter last started it. While it has not,
  // it still runs inside the awaiter's call, on the awaiter's thread, and needs no atomics to
  // tell that it has finished. An awaitable of lade sets this before it lets go of the coroutine.
  bool suspended = false;

  void inherit(const promise_base& parent) noexcept {
    context = parent.context;
    consumed = parent.consumed;
  }

  // Foreign awaitables do not set `suspended`: for them it is set beforehand.
  template <class Awaitable>
  Awaitable&& await_transform(Awaitable&& awaitable) noexcept {
    if constexpr (!requires { typename std::remove_cvref_t<Awaitable>::sets_suspended; })
      suspended = true;
    return static_cast<Awaitable&&>(awaitable);
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

}  // namespace detail
}  // namespace lade
