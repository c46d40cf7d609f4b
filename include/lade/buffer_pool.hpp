// Memory that is used again: buffers that come back when nobody holds them any more.

#pragma once

#include <lade/buffer.hpp>
#include <lade/context.hpp>
#include <lade/memory_resource.hpp>
#include <lade/task.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

namespace lade {

class memory_charge;

namespace detail {
class block_store;
class call_memory;
}  // namespace detail

// Hands out buffers and keeps what comes back for the next of about the same size, so that the
// hot path of a loader touches no fresh page. Whoever asks for more than the limit leaves waits,
// unless it works on the item that a run waits for (see docs/decisions/memory-budget.md): that one
// goes beyond the limit, and so does allocate_now.
//
// Memory comes from a memory_resource. A pool writes nothing to it, so it may be that of a device.
// If the resource has no more, the pool returns what it keeps of it and asks again; then it throws
// what the resource throws.
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

  explicit buffer_pool(std::size_t limit_bytes = unlimited, memory_resource& from = host_memory());

  // The same pool, with the same limit and statistics, whose buffers come from another resource.
  buffer_pool over(memory_resource& other) const;

  memory_resource& resource() const noexcept;

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
  bool would_wait(std::size_t bytes, std::size_t buffers = 1) const noexcept;

  // Grants memory beyond the limit to waiting allocations whose item a run now waits for. For
  // stages and runs: called each time that they have begun to wait for another item.
  void reconsider() const noexcept;

  statistics stats() const;

 private:
  struct state;
  class reservation;

  friend class detail::call_memory;
  friend class memory_charge;
  friend std::optional<buffer> try_allocate(const context& surroundings, std::size_t bytes);
  friend task<memory_charge> charge(std::size_t bytes);

  buffer_pool(std::shared_ptr<state> shared, detail::block_store& store) noexcept;

  static task<> wait_for(std::shared_ptr<state> pool, std::size_t bytes);
  static task<buffer> allocate_from(buffer_pool pool, std::size_t bytes);
  std::optional<buffer> try_allocate_for(const detail::memory_claim* claim, std::size_t bytes);

  std::shared_ptr<state> state_;
  detail::block_store* store_;  // one of the state's
};

// Bytes that count to the budget of a runtime without being one of its buffers: what a library
// allocates by itself, while it is worked with. They are given back when it is destroyed, on any
// thread.
class memory_charge {
 public:
  memory_charge() = default;

  // At once, beyond the limit if need be, for the plain function of a stage in whose call this
  // thread is. Charges nothing outside of one.
  explicit memory_charge(std::size_t bytes);

  memory_charge(memory_charge&& other) noexcept
      : pool_(std::move(other.pool_)), bytes_(std::exchange(other.bytes_, 0)) {}
  memory_charge& operator=(memory_charge&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~memory_charge() {
    if (bytes_ > 0) give_back();
  }

  std::size_t bytes() const noexcept { return bytes_; }

 private:
  friend class detail::call_memory;
  friend task<memory_charge> charge(std::size_t bytes);

  memory_charge(std::shared_ptr<buffer_pool::state> pool, std::size_t bytes) noexcept
      : pool_(std::move(pool)), bytes_(bytes) {}

  void give_back() noexcept;

  std::shared_ptr<buffer_pool::state> pool_;  // null if there is nothing to give back
  std::size_t bytes_ = 0;
};

// The same for a coroutine, which waits for them as for a buffer.
task<memory_charge> charge(std::size_t bytes);

// For functions that know before a call how much memory it will take. A stage awaits what
// `function.memory_needed(item)` says, and then calls the function, which takes its buffers and
// charges from it. What that throws is ignored: the call will throw too.
template <class F, class In>
concept tells_memory = requires(const F& function, const In& item) {
  { function.memory_needed(item) } -> std::convertible_to<std::size_t>;
};

// Uninitialised bytes for the plain function of a stage in whose call this thread is, at once,
// beyond the limit if need be; fresh memory outside of one.
buffer allocate_now(std::size_t bytes);

// Uninitialised bytes from the pool of the awaiting coroutine; fresh memory where it has none. In a
// run it waits for them as buffer_pool::allocate does, otherwise it gets them at once. Time that a
// stage's function waits here does not count to its limits of time.
task<buffer> allocate(std::size_t bytes);

// The same from another resource, within the same budget.
task<buffer> allocate(std::size_t bytes, memory_resource& from);

// The same as the first if it needs not wait; otherwise nothing.
std::optional<buffer> try_allocate(const context& surroundings, std::size_t bytes);

// The same at once, beyond the limit if need be.
buffer allocate_now(const context& surroundings, std::size_t bytes);

namespace detail {

// Where the plain functions of a stage that one thread calls one after the other take memory, and
// the stop of their stage.
class call_memory {
 public:
  call_memory(buffer_pool& pool, stage_counters& stage, std::stop_token stop) noexcept
      : pool_(pool), stage_(stage), stop_(std::move(stop)) {}

  // For the next call, which takes its memory from it.
  void reserve(memory_charge reserved) noexcept { reserved_ = std::move(reserved); }

  // For a call for several items, on its thread: the memory of another one, if nobody would have to
  // wait for it; and that one of those that it has in hand has been ended: of what is reserved, the
  // others need so many bytes at most.
  bool try_reserve(std::size_t bytes) noexcept;
  std::size_t reserved() const noexcept { return reserved_.bytes(); }
  void end_item(std::size_t others_need) noexcept;

  // During a call, on its thread.
  class entered {
   public:
    explicit entered(call_memory& memory) noexcept
        : memory_(memory), outer_(std::exchange(current, &memory)) {}
    entered(const entered&) = delete;
    ~entered() {
      current = outer_;
      if (memory_.taken_ > 0 || memory_.reserved_.bytes() > 0) memory_.leave();
    }

   private:
    call_memory& memory_;
    call_memory* outer_;
  };

  // That of the call in which this thread is; null outside of one.
  static constinit thread_local call_memory* current;

  buffer allocate(std::size_t bytes);
  memory_charge charge(std::size_t bytes);
  bool stop_requested() const noexcept { return stop_.stop_requested(); }

  // For the threads of a library, whose work may outlive the call.
  const buffer_pool& pool() const noexcept { return pool_; }

 private:
  void note_taken() noexcept;
  void leave() noexcept;

  buffer_pool& pool_;
  stage_counters& stage_;
  std::stop_token stop_;
  memory_charge reserved_;
  std::size_t taken_ = 0;  // since an item was ended, beyond what was reserved
};

// What a call of the function for the item will take; nothing where that cannot be told.
template <class F, class In>
std::size_t needed_for(const F& function, const In& item) noexcept try {
  return function.memory_needed(item);
} catch (...) {
  return 0;
}

// So much, or nothing where the awaiting coroutine is asked to stop: nobody wants then what the
// call gives.
task<memory_charge> reserve(std::size_t bytes);

}  // namespace detail

}  // namespace lade
