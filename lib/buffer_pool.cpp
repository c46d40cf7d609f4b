#include <lade/buffer_pool.hpp>
#include <lade/detail/waiter.hpp>
#include <lade/stats.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include <sys/mman.h>

namespace lade {

static constexpr std::size_t pool_page_bytes = 4096;
static constexpr std::size_t pool_huge_page_bytes = std::size_t{2} << 20;

static std::size_t round_up(std::size_t bytes, std::size_t step) {
  return (bytes + step - 1) / step * step;
}

// The sizes of blocks: multiples of 64 up to 512, from there on eight steps for each doubling.
static std::size_t block_bytes_for(std::size_t bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 4) throw std::bad_alloc();
  if (bytes <= 512) return round_up(bytes, buffer::alignment);
  auto step = std::bit_floor(bytes - 1) / 8;
  return round_up(bytes, bytes > pool_page_bytes ? std::max(step, pool_page_bytes) : step);
}

// The place of a block's size among all sizes.
static std::size_t size_class_of(std::size_t block_bytes) {
  if (block_bytes <= 512) return block_bytes / buffer::alignment - 1;
  auto exponent = static_cast<std::size_t>(std::bit_width(block_bytes - 1)) - 1;  // 9 or more
  auto eighth = (block_bytes - 1 - (std::size_t{1} << exponent)) >> (exponent - 3);
  return 8 + (exponent - 9) * 8 + eighth;
}

static std::align_val_t block_alignment(std::size_t block_bytes) {
  if (block_bytes >= pool_huge_page_bytes) return std::align_val_t(pool_huge_page_bytes);
  if (block_bytes > pool_page_bytes) return std::align_val_t(pool_page_bytes);
  return std::align_val_t(buffer::alignment);
}

static void* new_block(std::size_t bytes) {
  auto* block = ::operator new(bytes, block_alignment(bytes));
  if (bytes >= pool_huge_page_bytes) (void)madvise(block, bytes, MADV_HUGEPAGE);
  return block;
}

static void delete_block(void* block, std::size_t bytes) noexcept {
  ::operator delete(block, block_alignment(bytes));
}

// A kept block holds the link to the next one of its size.
struct kept_block {
  kept_block* next;
  std::size_t bytes;
};

// Waits until its bytes are reserved.
class buffer_pool::reservation : private detail::waiter {
 public:
  reservation(buffer_pool::state& pool, std::size_t block_bytes) noexcept
      : pool_(pool), bytes_(block_bytes) {}

  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<task<buffer>::promise_type> coroutine);
  void await_resume();

 private:
  friend struct buffer_pool::state;

  buffer_pool::state& pool_;
  std::size_t bytes_;
};

// Shared by the pool and its buffers.
struct buffer_pool::state {
  static constexpr std::size_t most_kept_without_limit = std::size_t{64} << 20;

  const std::size_t limit;
  std::mutex mutex;                   // guards all that follows
  std::atomic<std::size_t> used = 0;  // only would_wait reads it without the mutex
  std::size_t peak = 0;
  std::size_t kept = 0;
  std::uint64_t waits = 0;
  detail::wait_list waiters;
  std::array<kept_block*, 8 + 8 * 55> free_blocks{};  // by size class

  explicit state(std::size_t limit_bytes) : limit(limit_bytes) {}
  ~state() { delete_blocks(take_kept(kept)); }

  bool fits(std::size_t bytes) const noexcept {
    auto out = used.load(std::memory_order_relaxed);
    return out == 0 || (out <= limit && bytes <= limit - out);
  }

  std::size_t room() const noexcept { return limit - std::min(used.load(), limit); }

  void reserve(std::size_t bytes) noexcept {
    used += bytes;
    peak = std::max(peak, used.load());
  }

  // A block, or nothing if one would have to wait for it.
  void* try_take(std::size_t bytes) {
    std::unique_lock lock(mutex);
    if (!waiters.empty() || !fits(bytes)) return nullptr;
    reserve(bytes);
    return take(bytes, lock);
  }

  // A block for bytes that have been reserved. Unlocks.
  void* take(std::size_t bytes, std::unique_lock<std::mutex>& lock) {
    if (auto* block = pop(size_class_of(bytes))) return block;
    auto* surplus = kept > room() ? take_kept(kept - room()) : nullptr;
    lock.unlock();
    delete_blocks(surplus);
    try {
      return new_block(bytes);
    } catch (...) {
      give_back(nullptr, bytes);
      throw;
    }
  }

  void give_back(void* block, std::size_t bytes) noexcept {
    detail::wait_list granted;
    {
      std::lock_guard lock(mutex);
      used -= bytes;
      auto most = limit == unlimited ? most_kept_without_limit : room();
      if (block && kept + bytes <= most) push(std::exchange(block, nullptr), bytes);
      granted = grant();
    }
    if (block) delete_block(block, bytes);
    granted.resume_all();
  }

  // Somebody in front has left without being served.
  void waiter_left() noexcept {
    detail::wait_list granted;
    {
      std::lock_guard lock(mutex);
      granted = grant();
    }
    granted.resume_all();
  }

  // Reserves for the waiters, the oldest first, as long as their bytes are free.
  detail::wait_list grant() noexcept {
    detail::wait_list granted;
    while (auto* waiting = static_cast<reservation*>(waiters.first())) {
      if (!fits(waiting->bytes_)) break;
      reserve(waiting->bytes_);
      granted.push_back(*waiters.settle_first());
    }
    return granted;
  }

  void push(void* block, std::size_t bytes) noexcept {
    auto& list = free_blocks[size_class_of(bytes)];
    list = new (block) kept_block{list, bytes};
    kept += bytes;
  }

  kept_block* pop(std::size_t size_class) noexcept {
    auto* block = free_blocks[size_class];
    if (!block) return nullptr;
    free_blocks[size_class] = block->next;
    kept -= block->bytes;
    return block;
  }

  // Takes out kept blocks of `bytes` or more in all, the largest first.
  kept_block* take_kept(std::size_t bytes) noexcept {
    kept_block* taken = nullptr;
    auto goal = kept - bytes;
    for (auto size_class = free_blocks.size(); size_class-- > 0;)
      while (kept > goal && free_blocks[size_class]) {
        auto* block = pop(size_class);
        block->next = std::exchange(taken, block);
      }
    return taken;
  }

  static void delete_blocks(kept_block* first) noexcept {
    while (first) {
      auto* block = std::exchange(first, first->next);
      delete_block(block, block->bytes);
    }
  }

  static buffer make_buffer(const std::shared_ptr<state>& pool, void* block,
                            std::size_t block_bytes, std::size_t bytes) {
    auto give_back = [pool, block_bytes](void* last) { pool->give_back(last, block_bytes); };
    return {std::shared_ptr<const void>(block, std::move(give_back)),
            {static_cast<std::byte*>(block), bytes}};
  }
};

bool buffer_pool::reservation::await_suspend(
    std::coroutine_handle<task<buffer>::promise_type> coroutine) {
  return park_after_look(coroutine, pool_.mutex, pool_.waiters, [this] {
    if (pool_.waiters.empty() && pool_.fits(bytes_)) {
      pool_.reserve(bytes_);
      return true;
    }
    ++pool_.waits;
    return false;
  });
}

void buffer_pool::reservation::await_resume() {
  try {
    finish("allocate " + std::to_string(bytes_) + " bytes");
  } catch (...) {
    pool_.waiter_left();  // it may have been in the way of smaller ones
    throw;
  }
}

buffer_pool::buffer_pool(std::size_t limit_bytes) : state_(std::make_shared<state>(limit_bytes)) {}

task<buffer> buffer_pool::allocate(std::size_t bytes) { return allocate_from(state_, bytes); }

task<buffer> buffer_pool::allocate_from(std::shared_ptr<state> pool, std::size_t bytes) {
  if (bytes == 0) co_return buffer();
  auto block_bytes = block_bytes_for(bytes);
  auto* block = pool->try_take(block_bytes);
  if (!block) {
    reservation waiting(*pool, block_bytes);
    co_await waiting;
    std::unique_lock lock(pool->mutex);
    block = pool->take(block_bytes, lock);
  }
  co_return state::make_buffer(pool, block, block_bytes, bytes);
}

std::optional<buffer> buffer_pool::try_allocate(std::size_t bytes) {
  if (bytes == 0) return buffer();
  auto block_bytes = block_bytes_for(bytes);
  auto* block = state_->try_take(block_bytes);
  if (!block) return std::nullopt;
  return state::make_buffer(state_, block, block_bytes, bytes);
}

buffer_pool::statistics buffer_pool::stats() const {
  std::lock_guard lock(state_->mutex);
  return {state_->limit, state_->used, state_->peak, state_->kept, state_->waits};
}

buffer buffer_pool::allocate_now(std::size_t bytes) {
  if (bytes == 0) return buffer();
  auto block_bytes = block_bytes_for(bytes);
  std::unique_lock lock(state_->mutex);
  state_->reserve(block_bytes);
  auto* block = state_->take(block_bytes, lock);
  return state::make_buffer(state_, block, block_bytes, bytes);
}

bool buffer_pool::would_wait(std::size_t bytes) const { return !state_->fits(bytes); }

buffer allocate(const context& surroundings, std::size_t bytes) {
  if (surroundings.stage) surroundings.stage->bytes.fetch_add(bytes, std::memory_order_relaxed);
  return surroundings.memory ? surroundings.memory->allocate_now(bytes) : buffer(bytes);
}

}  // namespace lade
