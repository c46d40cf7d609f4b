// What a coroutine inherits from the coroutine that awaits it.

#pragma once

#include <lade/detail/runtime/executor.hpp>

#include <coroutine>
#include <cstdint>
#include <stop_token>

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

// The surroundings of a coroutine: `co_await this_context()` gives those of the one it is written
// in. They pass from awaiter to awaited, so that functions need no argument for them.
struct context {
  lade::runtime* runtime = nullptr;  // null outside of a runtime
  detail::executor* home = nullptr;  // where its coroutines resume; null: wherever they are woken
  std::stop_token stop = {};         // when requested, awaits end early with errc::stopped
  buffer_pool* memory = nullptr;     // where buffers come from; null: fresh memory
  detail::memory_claim* claim = nullptr;      // by which it waits for them; null: it does not wait
  detail::stage_counters* stage = nullptr;    // whose statistics it adds to
  std::uint64_t stage_number = 0;             // of that stage, which no other ever has; 0: none
  unsigned distance = 0;                      // of that stage from the end of its pipeline
  detail::run_state* run = nullptr;           // the run that it works for; null: none
  std::uint64_t epoch = 0;                    // of the run; 0 outside of one
  lade::trace* trace = nullptr;               // where its system calls are recorded; null: nowhere
  const detail::path_place* place = nullptr;  // which path of a tee it is in; null: in none
};

namespace detail {

// For stops that pass on stops. By value: what is stopped may end inside of the request, and the
// source that it owns with it.
inline void request_stop(std::stop_source source) noexcept { source.request_stop(); }

// Resumes a coroutine of this context, where it belongs.
inline void resume_at_home(std::coroutine_handle<> coroutine, const context* where) noexcept {
  if (where && where->home)
    where->home->resume(coroutine, where->distance);
  else
    coroutine.resume();
}

}  // namespace detail
}  // namespace lade
