// The execution context that a coroutine inherits from its awaiter.

#pragma once

#include <lade/detail/runtime/executor.hpp>

#include <cstdint>
#include <stop_token>
#include <string>

namespace lade {

class buffer_pool;
class runtime;
class trace;

namespace detail {
class memory_claim;
class run_state;
class stage_counters;
struct path_place;
}  // namespace detail

// The execution context of a coroutine. `co_await this_context()` returns the context of the
// coroutine that contains the expression. An awaited coroutine inherits the context of its awaiter,
// so functions need no parameter for it.
//
// Programs and modules may read `runtime`, `stop`, `memory`, `stage_number`, `epoch`, `trace` and
// stage_name(). In a copy for with_context() they may also set:
// - `stop`: another source of cancellation.
// - `memory`: another pool; null for memory outside of the budget.
// - `claim`: null, so that its allocations do not wait for the budget.
// - `home`: `&runtime->pool()`, to resume on the CPU pool.
//
// The other members are for the library; a copy keeps them.
struct context {
  lade::runtime* runtime = nullptr;  // null outside a runtime
  detail::executor* home = nullptr;  // resumes its coroutines; null: the thread that wakes them
  std::stop_token stop = {};         // cancels awaits, which then throw error(stopped)
  buffer_pool* memory = nullptr;     // pool of its buffers; null: fresh memory
  detail::memory_claim* claim = nullptr;    // claim to the memory budget; null: never waits
  detail::stage_counters* stage = nullptr;  // statistics of its stage; null: none
  std::uint64_t stage_number = 0;           // number of that stage, unique in the process; 0: none
  unsigned distance = 0;  // of that stage from the end, as the run opened them; the last: 1
  detail::run_state* run = nullptr;           // run that it works for; null: none
  std::uint64_t epoch = 0;                    // epoch of the run; 0 outside a run
  lade::trace* trace = nullptr;               // trace of its system calls; null: none
  const detail::path_place* place = nullptr;  // innermost path of a route or tee; null: none

  // The name of the stage in statistics; empty if there is none.
  std::string stage_name() const;
};

namespace detail {

// For callbacks that forward a stop to another source. Takes the source by value: the stopped work
// may end inside the request, and destroy the source that it owns.
inline void request_stop(std::stop_source source) noexcept { source.request_stop(); }

}  // namespace detail
}  // namespace lade
