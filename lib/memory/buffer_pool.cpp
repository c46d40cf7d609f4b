#include "block_store.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/detail/coroutines/waiter.hpp>
#include <lade/detail/memory/demand.hpp>
#include <lade/detail/observability/stage_counters.hpp>
#include <lade/sleep.hpp>
#include <lade/this_context.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <list>
#include <mutex>
#include <string>
#include <utility>

namespace lade {

using detail::block;
using detail::block_bytes_for;
using detail::block_store;

// An allocation that waits until its bytes are reserved. A thread that frees bytes, or makes the
// allocation urgent, reserves them and settles the waiter under the mutex.
class buffer_pool::reservation : private detail::waiter {
 public:
  reservation(buffer_pool::state& pool, std::size_t block_bytes) noexcept
      : pool_(pool), bytes_(block_bytes) {}

  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<task<>::promise_type> coroutine);
  void await_resume();

 private:
  friend struct buffer_pool::state;

  bool is_urgent() const noexcept { return claim_ && claim_->is_urgent(); }

  buffer_pool::state& pool_;
  std::size_t bytes_;
  const detail::memory_claim* claim_ = nullptr;  // claim of the allocating coroutine; null: none
};

// The state of a pool, shared by its copies and its buffers. Waiters are served in FIFO order,
// except urgent ones (see memory_claim), which get memory at once and beyond the limit.
//
// - Lock: the mutex guards all members from `used` on. Memory is allocated, deallocated and
//   coroutines are resumed without it.
// - Lifetime: the state keeps itself alive through `self` while bytes are in use.
// - Urgency changes without the mutex. A waiter sets `some_wait`, then checks whether it is urgent.
//   The thread that changes a demand calls reconsider(), which checks `some_wait` afterwards. The
//   sequentially consistent fences between ensure that one of both sees the other.
struct buffer_pool::state : std::enable_shared_from_this<state> {
  static constexpr std::size_t most_kept_without_limit = std::size_t{64} << 20;

  const std::size_t limit;
  std::mutex mutex;
  std::atomic<std::size_t> used = 0;  // read without the mutex by would_wait() only
  std::size_t peak = 0;
  std::uint64_t waits = 0;
  detail::wait_list waiters;
  std::atomic<bool> some_wait = false;  // read without the mutex by reconsider(); then it locks
  std::shared_ptr<state> self;          // set while bytes are in use
  std::list<block_store> stores;        // one for each resource; the first is the pool's own

  state(std::size_t limit_bytes, memory_resource& resource) : limit(limit_bytes) {
    stores.emplace_back(resource);
  }

  block_store& store_of(memory_resource& resource) {
    std::lock_guard lock(mutex);
    for (auto& each : stores)
      if (&each.resource() == &resource) return each;
    return stores.emplace_back(resource);
  }

  std::size_t kept_bytes() const noexcept {
    std::size_t sum = 0;
    for (auto& each : stores) sum += each.kept_bytes();
    return sum;
  }

  // Releases the memory of kept blocks, at least `bytes` if there are as many.
  detail::surplus shrink(std::size_t bytes) noexcept {
    detail::surplus unused;
    auto kept = kept_bytes();
    auto goal = kept - std::min(bytes, kept);
    for (auto& each : stores)
      if (auto now = kept_bytes(); now > goal) each.shrink(now - goal, unused);
    return unused;
  }

  bool fits(std::size_t bytes, std::size_t buffers = 1) const noexcept {
    auto out = used.load(std::memory_order_relaxed);
    if (buffers == 0 || (out == 0 && buffers == 1)) return true;
    return out <= limit && bytes <= (limit - out) / buffers;
  }

  std::size_t available() const noexcept { return limit - std::min(used.load(), limit); }

  void reserve(std::size_t bytes) noexcept {
    if (used == 0) self = shared_from_this();
    used += bytes;
    peak = std::max(peak, used.load());
  }

  // Reserves `bytes`; up to `reserved` of them are reserved already. Returns the number of bytes
  // taken from `reserved`.
  std::size_t reserve_with(std::size_t reserved, std::size_t bytes) noexcept {
    auto turned = std::min(reserved, bytes);
    reserve(bytes - turned);
    return turned;
  }

  // Whether an allocation without priority may be granted now. In a run, an allocation that exceeds
  // the limit is granted only when it is urgent.
  bool may_give(std::size_t bytes, const detail::memory_claim* claim) const noexcept {
    return fits(bytes) && !(claim && bytes > limit);
  }

  // Returns a block, or nothing if the caller would have to wait.
  block try_take(block_store& from, std::size_t bytes, const detail::memory_claim* claim) {
    std::unique_lock lock(mutex);
    if (!waiters.empty() || !may_give(bytes, claim)) return {};
    reserve(bytes);
    return take(from, bytes, lock);
  }

  // Returns a block for reserved bytes. Releases the mutex, because allocation is slow, and because
  // make_buffer(), if it fails, returns the block and so acquires the mutex.
  block take(block_store& from, std::size_t bytes, std::unique_lock<std::mutex>& lock) {
    if (auto kept = from.take(bytes); kept.memory) {
      lock.unlock();
      return kept;
    }
    {
      auto unused = shrink(std::max(kept_bytes(), available()) - available());
      lock.unlock();
    }
    try {
      auto fresh = new_block(from, bytes);
      std::lock_guard again(mutex);
      from.add(fresh);
      return fresh;
    } catch (...) {
      give_back(from, {}, bytes);
      throw;
    }
  }

  // If the resource has no memory, releases the kept blocks of the resource and tries again.
  block new_block(block_store& from, std::size_t bytes) {
    try {
      return from.new_block(bytes);
    } catch (...) {
      if (!give_up_kept(from)) throw;
    }
    return from.new_block(bytes);
  }

  bool give_up_kept(block_store& of) noexcept {
    detail::surplus unused;
    std::lock_guard lock(mutex);
    auto kept = of.kept_bytes();
    of.shrink(kept, unused);
    return kept > 0;
  }

  void give_back(block_store& to, block back, std::size_t bytes) noexcept {
    std::shared_ptr<state> last;
    detail::surplus unused;
    detail::wait_list granted;
    {
      std::lock_guard lock(mutex);
      used -= bytes;
      if (used == 0) last = std::move(self);
      auto most = limit == unlimited ? most_kept_without_limit : available();
      if (back.memory && kept_bytes() + bytes <= most)
        to.keep(back);
      else if (back.memory)
        to.drop(back, unused);
      granted = grant();
    }
    granted.resume_all();
  }

  // A waiter has left without memory, so the next ones may be served.
  void waiter_left() noexcept {
    detail::wait_list granted;
    {
      std::lock_guard lock(mutex);
      granted = grant();
    }
    granted.resume_all();
  }

  // Grants waiters in FIFO order, up to the first one that does not fit. Requires the mutex. The
  // caller resumes the result after it has released the mutex.
  detail::wait_list grant() noexcept {
    detail::wait_list granted;
    while (auto* waiting = static_cast<reservation*>(waiters.first())) {
      if (!may_give(waiting->bytes_, waiting->claim_)) break;
      reserve(waiting->bytes_);
      granted.push_back(*waiters.settle_first());
    }
    some_wait = !waiters.empty();
    return granted;
  }

  // Grants all urgent waiters.
  void let_urgent_through() noexcept {
    detail::wait_list granted;
    {
      std::lock_guard lock(mutex);
      auto urgent = [](detail::listed_waiter& each) {
        return static_cast<reservation&>(each).is_urgent();
      };
      while (auto* waiting = static_cast<reservation*>(waiters.settle_first(urgent))) {
        reserve(waiting->bytes_);
        granted.push_back(*waiting);
      }
      if (!granted.empty()) {
        auto more = grant();  // the next waiters may be smaller
        while (auto* waiting = more.settle_first()) granted.push_back(*waiting);
      }
    }
    granted.resume_all();
  }

  buffer make_buffer(block_store& of, block from, std::size_t block_bytes, std::size_t bytes) {
    auto give_back = [this, &of, group = from.group, block_bytes](void* memory) {
      this->give_back(of, {memory, group}, block_bytes);
    };
    return {std::shared_ptr<const void>(from.memory, std::move(give_back)),
            {static_cast<std::byte*>(from.memory), bytes},
            of.resource().where()};
  }
};

bool buffer_pool::reservation::await_suspend(
    std::coroutine_handle<task<>::promise_type> coroutine) {
  if (auto* execution = coroutine.promise().context) claim_ = execution->claim;
  return park_after_look(coroutine, pool_.mutex, pool_.waiters, [this] {
    // A thread that makes this item urgent sees some_wait, or is_urgent() sees the change.
    pool_.some_wait = true;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    bool now = (pool_.waiters.empty() && pool_.may_give(bytes_, claim_)) || is_urgent();
    if (now)
      pool_.reserve(bytes_);
    else
      ++pool_.waits;
    pool_.some_wait = !now || !pool_.waiters.empty();
    return now;
  });
}

void buffer_pool::reservation::await_resume() {
  char doing[48];  // on the stack: a failed allocation of the text would lose the granted bytes
  std::snprintf(doing, sizeof doing, "allocate %zu bytes", bytes_);
  try {
    finish(doing);
  } catch (...) {
    pool_.waiter_left();
    throw;
  }
}

buffer_pool::buffer_pool(std::size_t limit_bytes, memory_resource& from)
    : state_(std::make_shared<state>(limit_bytes, from)), store_(&state_->stores.front()) {}

buffer_pool::buffer_pool(std::shared_ptr<state> shared, block_store& store) noexcept
    : state_(std::move(shared)), store_(&store) {}

buffer_pool buffer_pool::over(memory_resource& other) const {
  return buffer_pool(state_, state_->store_of(other));
}

memory_resource& buffer_pool::resource() const noexcept { return store_->resource(); }

task<buffer> buffer_pool::allocate(std::size_t bytes) { return allocate_from(*this, bytes); }

task<buffer> buffer_pool::allocate_from(buffer_pool pool, std::size_t bytes) {
  if (bytes == 0) co_return buffer();
  auto block_bytes = block_bytes_for(bytes);
  auto& here = co_await this_context_reference();
  auto found = pool.state_->try_take(*pool.store_, block_bytes, here.claim);
  if (!found.memory) {
    co_await wait_for(pool.state_, block_bytes);
    std::unique_lock lock(pool.state_->mutex);
    found = pool.state_->take(*pool.store_, block_bytes, lock);
  }
  co_return pool.state_->make_buffer(*pool.store_, found, block_bytes, bytes);
}

// Waits until `bytes` are reserved.
task<> buffer_pool::wait_for(std::shared_ptr<state> pool, std::size_t bytes) {
  auto& here = co_await this_context_reference();
  detail::shared_waiting_time of_none;
  detail::stopwatch of_claim(here.claim ? here.claim->waited : of_none);
  detail::stopwatch of_stage(here.stage ? here.stage->memory_wait : of_none);
  reservation waiting(*pool, bytes);
  co_await waiting;
}

std::optional<buffer> buffer_pool::try_allocate(std::size_t bytes) {
  return try_allocate_for(nullptr, bytes);
}

std::optional<buffer> buffer_pool::try_allocate_for(const detail::memory_claim* claim,
                                                    std::size_t bytes) {
  if (bytes == 0) return buffer();
  auto block_bytes = block_bytes_for(bytes);
  auto found = state_->try_take(*store_, block_bytes, claim);
  if (!found.memory) return std::nullopt;
  return state_->make_buffer(*store_, found, block_bytes, bytes);
}

buffer_pool::statistics buffer_pool::stats() const {
  std::lock_guard lock(state_->mutex);
  return {state_->limit, state_->used, state_->peak, state_->kept_bytes(), state_->waits};
}

buffer buffer_pool::allocate_now(std::size_t bytes) {
  if (bytes == 0) return buffer();
  auto block_bytes = block_bytes_for(bytes);
  std::unique_lock lock(state_->mutex);
  state_->reserve(block_bytes);
  auto found = state_->take(*store_, block_bytes, lock);
  return state_->make_buffer(*store_, found, block_bytes, bytes);
}

bool buffer_pool::would_wait(std::size_t bytes, std::size_t buffers) const noexcept {
  return !state_->fits(bytes, buffers);
}

// Called after the caller has changed a demand; see state for the fence.
void buffer_pool::reconsider() const noexcept {
  if (state_->limit == unlimited) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (state_->some_wait.load(std::memory_order_relaxed)) state_->let_urgent_through();
}

static void count_for_stage(const context& execution, std::size_t bytes) noexcept {
  if (execution.stage) execution.stage->allocated.fetch_add(bytes, std::memory_order_relaxed);
}

std::optional<buffer> try_allocate(const context& execution, std::size_t bytes) {
  if (!execution.memory || !execution.claim) return allocate_now(execution, bytes);
  auto got = execution.memory->try_allocate_for(execution.claim, bytes);
  if (got) count_for_stage(execution, bytes);
  return got;
}

task<buffer> allocate(std::size_t bytes) {
  auto& here = co_await this_context_reference();
  auto got = try_allocate(here, bytes);
  if (got) co_return std::move(*got);
  auto granted = co_await here.memory->allocate(bytes);
  count_for_stage(here, bytes);
  co_return granted;
}

task<buffer> allocate(std::size_t bytes, memory_resource& from) {
  auto& here = co_await this_context_reference();
  if (!here.memory) co_return buffer(bytes, from);
  auto pool = here.memory->over(from);
  auto inner = here;
  inner.memory = &pool;
  co_return co_await with_context(inner, allocate(bytes));
}

buffer allocate_now(const context& execution, std::size_t bytes) {
  count_for_stage(execution, bytes);
  if (execution.stage) execution.stage->record_at_once(bytes);
  return execution.memory ? execution.memory->allocate_now(bytes) : buffer(bytes);
}

memory_charge::memory_charge(std::size_t bytes) {
  if (auto* call = detail::call_memory::current) *this = call->charge(bytes);
}

void memory_charge::give_back() noexcept { pool_->give_back(pool_->stores.front(), {}, bytes_); }

task<memory_charge> charge(std::size_t bytes) {
  auto& here = co_await this_context_reference();
  if (!here.memory || bytes == 0) co_return memory_charge();
  auto pool = here.memory->state_;
  bool now = false;
  {
    std::lock_guard lock(pool->mutex);
    now = !here.claim || (pool->waiters.empty() && pool->may_give(bytes, here.claim));
    if (now) pool->reserve(bytes);
  }
  if (!now) co_await buffer_pool::wait_for(pool, bytes);
  co_return memory_charge(std::move(pool), bytes);
}

task<memory_charge> detail::reserve(std::size_t bytes) {
  try {
    co_return co_await charge(bytes);
  } catch (...) {}
  co_return memory_charge();
}

buffer allocate_now(std::size_t bytes) {
  auto* call = detail::call_memory::current;
  return call ? call->allocate(bytes) : buffer(bytes);
}

std::chrono::nanoseconds detail::waited_for_memory(const context& execution,
                                                   clock::time_point now) {
  return execution.claim ? execution.claim->waited.until(now) : std::chrono::nanoseconds();
}

bool waits_for_memory(const context& execution) noexcept {
  return execution.claim && execution.claim->waited.is_waiting();
}

bool never_waits_for_memory(const context& execution) noexcept {
  return !execution.claim || execution.claim->is_urgent();
}

plain_call::plain_call(const context& here, memory_charge reserved) {
  if (!here.memory || !here.stage) return;
  memory_.emplace(*here.memory, *here.stage, here.stop);
  memory_->reserve(std::move(reserved));
  inside_.emplace(*memory_);
}

std::optional<buffer_pool> pool_of_call() {
  auto* call = detail::call_memory::current;
  return call ? std::optional(call->pool()) : std::nullopt;
}

constinit thread_local detail::call_memory* detail::call_memory::current = nullptr;

buffer detail::call_memory::allocate(std::size_t bytes) {
  stage_.allocated.fetch_add(bytes, std::memory_order_relaxed);
  if (bytes == 0) return buffer();
  auto& pool = *pool_.state_;
  auto block_bytes = block_bytes_for(bytes);
  std::unique_lock lock(pool.mutex);
  auto turned = pool.reserve_with(reserved_.bytes_, block_bytes);
  reserved_.bytes_ -= turned;
  taken_ += block_bytes - turned;
  auto found = pool.take(*pool_.store_, block_bytes, lock);
  return pool.make_buffer(*pool_.store_, found, block_bytes, bytes);
}

memory_charge detail::call_memory::charge(std::size_t bytes) {
  auto& pool = pool_.state_;
  std::lock_guard lock(pool->mutex);
  auto turned = pool->reserve_with(reserved_.bytes_, bytes);
  reserved_.bytes_ -= turned;
  taken_ += bytes - turned;
  return {pool, bytes};
}

bool detail::call_memory::try_reserve(std::size_t bytes) noexcept {
  if (bytes == 0) return true;
  auto& pool = *pool_.state_;
  std::lock_guard lock(pool.mutex);
  if (!pool.waiters.empty() || !pool.fits(bytes) || bytes > pool.limit) return false;
  pool.reserve(bytes);
  reserved_.pool_ = pool_.state_;
  reserved_.bytes_ += bytes;
  return true;
}

void detail::call_memory::end_item(std::size_t others_need) noexcept {
  record_taken();
  if (reserved_.bytes_ <= others_need) return;
  const memory_charge unused(reserved_.pool_, reserved_.bytes_ - others_need);
  reserved_.bytes_ = others_need;
}

// If the call handles several items, one of them may have taken all of it.
void detail::call_memory::record_taken() noexcept {
  if (taken_ > 0) stage_.record_at_once(std::exchange(taken_, 0));
}

void detail::call_memory::leave() noexcept {
  record_taken();
  reserved_ = {};
}

}  // namespace lade
