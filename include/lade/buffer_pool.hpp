// Memory that is used again: buffers that come back when nobody holds them any more.

#pragma once

#include <lade/buffer.hpp>
#include <lade/context.hpp>
#include <lade/task.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

namespace lade {

// Hands out buffers and keeps what comes back for the next of about the same size, so that the
// hot path of a loader touches no fresh page. Whoever asks for more than the limit leaves waits,
// unless it works on the item that a run waits for (see docs/decisions/memory-budget.md): that one
// goes beyond the limit, and so does allocate_now.
//
// Buffers are aligned to 64 bytes, those of 4 KiB and more to 4 KiB, those of 2 MiB and more to
// huge pages. A buffer counts with the size of its block: at most an eighth more than was asked
// for, or what is missing to the next 64 bytes or 4 KiB. What is out and what is kept together
// stay below the limit; a pool without a limit keeps at most 64 MiB.
//
// Any thread may use a pool, and a buffer may die on any thread. Buffers may outlive their pool.
class buffer_pool {
 public:
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

  struct statistics {
    std::size_t limit_bytes;
    std::size_t used_bytes;  // of the buffers that are out
    std::size_t peak_bytes;  // the most that were ever out
    std::size_t kept_bytes;  // ready to be used again
    std::uint64_t waits;     // allocations that had to wait
  };

  explicit buffer_pool(std::size_t limit_bytes = unlimited);

  // Uninitialised bytes; waits until they are free. Who came first is served first. A buffer
  // larger than the limit is let through when nothing else is out, rather than never; in a run,
  // when its item is the one that the run waits for. Throws error(stopped) when the awaiting
  // coroutine is asked to stop while it waits.
  task<buffer> allocate(std::size_t bytes);

  // Uninitialised bytes, or nothing if one would have to wait for them.
  std::optional<buffer> try_allocate(std::size_t bytes);

  // Uninitialised bytes at once, beyond the limit if need be.
  buffer allocate_now(std::size_t bytes);

  // Whether so many buffers of this size could not be had at once. Stages begin no new work while
  // that is so.
  bool would_wait(std::size_t bytes, std::size_t buffers = 1) const;

  // For those who wait in a run for items: what they wait for is another item now.
  void reconsider() const noexcept;

  statistics stats() const;

 private:
  struct state;
  class reservation;

  friend std::optional<buffer> try_allocate(const context& surroundings, std::size_t bytes);

  static task<buffer> allocate_from(std::shared_ptr<state> pool, std::size_t bytes);
  std::optional<buffer> try_allocate_for(const detail::memory_claim* claim, std::size_t bytes);

  std::shared_ptr<state> state_;
};

// Uninitialised bytes from the pool of the awaiting coroutine; fresh memory where it has none. In a
// run it waits for them as buffer_pool::allocate does, otherwise it gets them at once. Time that a
// stage's function waits here does not count to its limits of time.
task<buffer> allocate(std::size_t bytes);

// The same if it needs not wait; otherwise nothing.
std::optional<buffer> try_allocate(const context& surroundings, std::size_t bytes);

// The same at once, beyond the limit if need be.
buffer allocate_now(const context& surroundings, std::size_t bytes);

}  // namespace lade
