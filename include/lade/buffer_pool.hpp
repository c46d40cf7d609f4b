// Recycles the memory of buffers, and limits how much is in use.

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

// Allocates buffers, and keeps the memory of destroyed ones for later buffers of about the same
// size. So the hot path of a loader touches no fresh pages.
//
// Limit: an allocation that exceeds the limit waits. Exceptions, which exceed it at once, are
// allocate_now() and allocations for the item that a run waits for; see
// docs/decisions/memory-budget.md. A buffer counts with the size of its block: at most an eighth
// more than its size, or the padding to the next 64 bytes or 4 KiB. Memory in use and kept memory
// together stay below the limit. A pool without a limit keeps at most 64 MiB.
//
// A pool allocates its memory from a memory_resource. It writes nothing to this memory, which may
// therefore be device memory. If the resource is exhausted, the pool returns the memory that it
// keeps of this resource, and retries; if that fails too, it throws the exception of the resource.
//
// Alignment: 64 bytes; 4 KiB for buffers of 4 KiB and more; 2 MiB, a huge page, for buffers of 2
// MiB and more.
//
// Lifetime: buffers may outlive their pool. Thread: any may use a pool or destroy a buffer.
class buffer_pool {
 public:
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

  struct statistics {
    std::size_t limit_bytes;
    std::size_t used_bytes;  // bytes of live buffers
    std::size_t peak_bytes;  // largest number of used_bytes so far
    std::size_t kept_bytes;  // bytes kept for later buffers
    std::uint64_t waits;     // number of allocations that had to wait
  };

  explicit buffer_pool(std::size_t limit_bytes = unlimited, memory_resource& from = host_memory());

  // A view of this pool, with the same limit and statistics, that allocates from another resource.
  buffer_pool over(memory_resource& other) const;

  memory_resource& resource() const noexcept;

  // Allocates uninitialised bytes, and waits until they are within the limit. Waiting allocations
  // are served in FIFO order. A buffer larger than the limit is allocated when no other is in use;
  // within a run, when the run waits for its item. Throws error(stopped) if the awaiting coroutine
  // is asked to stop while it waits.
  task<buffer> allocate(std::size_t bytes);

  // Allocates uninitialised bytes; returns nothing if that would have to wait.
  std::optional<buffer> try_allocate(std::size_t bytes);

  // Allocates uninitialised bytes at once, even beyond the limit.
  buffer allocate_now(std::size_t bytes);

  // Whether the limit leaves no capacity for `buffers` further buffers of `bytes` bytes. While that
  // is so, stages start no new work.
  bool would_wait(std::size_t bytes, std::size_t buffers = 1) const noexcept;

  // Grants memory beyond the limit to waiting allocations whose item a run now waits for. Stages
  // and runs must call it whenever they begin to wait for another item.
  void reconsider() const noexcept;

  statistics stats() const;

 private:
  struct state;
  class reservation;

  friend class detail::call_memory;
  friend class memory_charge;
  friend std::optional<buffer> try_allocate(const context& execution, std::size_t bytes);
  friend task<memory_charge> charge(std::size_t bytes);

  buffer_pool(std::shared_ptr<state> shared, detail::block_store& store) noexcept;

  static task<> wait_for(std::shared_ptr<state> pool, std::size_t bytes);
  static task<buffer> allocate_from(buffer_pool pool, std::size_t bytes);
  std::optional<buffer> try_allocate_for(const detail::memory_claim* claim, std::size_t bytes);

  std::shared_ptr<state> state_;
  detail::block_store* store_;  // owned by the state
};

// Bytes that count to the memory budget of a runtime without being a buffer of it, such as memory
// that a library allocates by itself. The destructor returns them to the budget, on any thread.
class memory_charge {
 public:
  memory_charge() = default;

  // Charges the bytes at once, even beyond the limit. For a plain function that a stage calls, on
  // the thread of the call. Elsewhere it charges nothing.
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

  std::shared_ptr<buffer_pool::state> pool_;  // null if nothing is charged
  std::size_t bytes_ = 0;
};

// Charges the bytes for the awaiting coroutine. In a run it waits for them as for a buffer.
task<memory_charge> charge(std::size_t bytes);

// Functions that know the memory need of a call in advance. A stage waits for
// `function.memory_needed(item)` bytes of the budget and then calls the function, which takes its
// buffers and charges from them. An exception of memory_needed is ignored, since the call will
// throw too.
template <class F, class In>
concept reserves_memory = requires(const F& function, const In& item) {
  { function.memory_needed(item) } -> std::convertible_to<std::size_t>;
};

// Allocates uninitialised bytes at once, even beyond the limit. For a plain function that a stage
// calls, on the thread of the call. Elsewhere it allocates fresh memory.
buffer allocate_now(std::size_t bytes);

// Allocates uninitialised bytes from the pool of the awaiting coroutine, or fresh memory if its
// context has no pool. In a run it waits as buffer_pool::allocate does; otherwise it never waits.
// The time limits of a stage's function exclude the time that it waits here.
task<buffer> allocate(std::size_t bytes);

// The same, from another resource and within the same budget.
task<buffer> allocate(std::size_t bytes, memory_resource& from);

// The same as allocate(bytes) for a context, but returns nothing if it would have to wait.
std::optional<buffer> try_allocate(const context& execution, std::size_t bytes);

// The same, at once and even beyond the limit.
buffer allocate_now(const context& execution, std::size_t bytes);

// For coroutines that wait for each other, such as readers of a cache that loads each object once.
// waits_for_memory: whether an allocation in this context waits now. never_waits_for_memory:
// whether none would, outside a run, or because the run waits for the item of the context.
//
// If the second of two coroutines never waits for memory, it must not wait for a first one that
// does: items behind the second one may hold the memory. The second one must do the work itself.
// Both results may change at any time: call again before each wait. Any thread, while the context
// lives.
bool waits_for_memory(const context& execution) noexcept;
bool never_waits_for_memory(const context& execution) noexcept;

namespace detail {

// The memory and the stop token of the plain functions that a stage calls on one thread, one after
// the other.
class call_memory {
 public:
  call_memory(buffer_pool& pool, stage_counters& stage, std::stop_token stop) noexcept
      : pool_(pool), stage_(stage), stop_(std::move(stop)) {}

  // Passes `reserved` to the next call, which allocates from it first.
  void reserve(memory_charge reserved) noexcept { reserved_ = std::move(reserved); }

  // For a call that handles several items, on its thread. try_reserve() reserves the memory of one
  // more item, unless an allocation would have to wait for it. end_item() reports that an item has
  // ended: the remaining items need at most `others_need` bytes, and the rest of the reservation is
  // returned.
  bool try_reserve(std::size_t bytes) noexcept;
  std::size_t reserved() const noexcept { return reserved_.bytes(); }
  void end_item(std::size_t others_need) noexcept;

  // Alive during a call, on its thread: makes the memory `current`.
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

  // The memory of the call that this thread is in; null outside one.
  static constinit thread_local call_memory* current;

  buffer allocate(std::size_t bytes);
  memory_charge charge(std::size_t bytes);
  bool stop_requested() const noexcept { return stop_.stop_requested(); }

  // For the threads of a library, whose work may outlive the call.
  const buffer_pool& pool() const noexcept { return pool_; }

 private:
  void record_taken() noexcept;
  void leave() noexcept;

  buffer_pool& pool_;
  stage_counters& stage_;
  std::stop_token stop_;
  memory_charge reserved_;
  std::size_t taken_ = 0;  // bytes taken since the last end_item(), beyond the reservation
};

// The memory need of a call of the function for the item; 0 if that is unknown.
template <class F, class In>
std::size_t needed_for(const F& function, const In& item) noexcept try {
  return function.memory_needed(item);
} catch (...) {
  return 0;
}

// Reserves the bytes. If the awaiting coroutine is asked to stop, returns an empty charge, since
// the result of the call is no longer needed.
task<memory_charge> reserve(std::size_t bytes);

}  // namespace detail

// While it lives, plain functions on its thread work for the coroutine that has made it: they
// allocate from the coroutine's memory (allocate_now, memory_charge) and see its stop
// (stop_requested). Stages do the same around the functions that they call; this is for a coroutine
// that calls such a function itself:
//
//   auto reserved = co_await lade::charge(decode.memory_needed(file));
//   co_await lade::continue_on_pool();
//   lade::plain_call call(here, std::move(reserved));  // `here`: co_await this_context_reference()
//   co_return decode(file);
//
// `reserved`: taken first; the rest is returned to the budget. Does nothing outside a run. Must be
// destroyed on the thread that made it, so no await may follow while it lives. The context must
// outlive it.
class plain_call {
 public:
  explicit plain_call(const context& here, memory_charge reserved = {});
  plain_call(const plain_call&) = delete;

 private:
  std::optional<detail::call_memory> memory_;
  std::optional<detail::call_memory::entered> inside_;
};

// The pool from which allocate_now() allocates in the plain function that the calling thread is in;
// nothing outside such a call. For the threads of a library, whose work may outlive the call.
std::optional<buffer_pool> pool_of_call();

}  // namespace lade
