#include "capture_guard.hpp"
#include "check.hpp"
#include "numa_policy.hpp"
#include "runtime_api.hpp"

#include <lade/continue_on.hpp>
#include <lade/cuda/memory.hpp>
#include <lade/error.hpp>
#include <lade/support/require.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace lade::cuda {

static constexpr std::size_t pinned_step = std::size_t{2} << 20;  // sizes of regions are multiples

static constexpr std::size_t in_pinned_steps(std::size_t bytes) noexcept {
  return (bytes + pinned_step - 1) / pinned_step * pinned_step;
}

// A region that this thread pins without the lock, and the need that it is for. While it is pinned,
// other threads may wait for the rest of it.
struct pinned_memory::pinning {
  pinning(pinned_memory& in, lock& unlocked, std::size_t region_bytes, std::size_t needed) noexcept
      : of(in), held(unlocked), bytes(region_bytes), need(needed) {
    of.coming_bytes_ += bytes;
    of.awaited_bytes_ += need;
    held.unlock();
  }
  pinning(const pinning&) = delete;
  ~pinning() {
    held.lock();
    of.coming_bytes_ -= bytes;
    of.awaited_bytes_ -= need;
    of.changed_.notify_all();
  }

  pinned_memory& of;
  lock& held;
  const std::size_t bytes;
  const std::size_t need;
};

pinned_memory::pinned_memory(const pinned_memory_options& options) : options_(options) {
  auto limit = options.limit_bytes, reserved = options.reserve_bytes;
  if (reserved > limit)
    lade::support::refuse_value("pinned_memory", "reserve_bytes", std::to_string(reserved),
                                fmt::format("at most limit_bytes, {}", limit));
  if (reserved == 0) return;
  lock held(mutex_);
  (void)add_region(std::min(limit, std::max(reserved, in_pinned_steps(reserved))), 0, held, true);
}

static void unpin(void* memory) noexcept {
  capture_guard beside_captures;
  (void)api().free_host(memory);
}

pinned_memory::~pinned_memory() {
  for (auto& [first, pinned] : regions_) unpin(first);
}

void* pinned_memory::allocate(std::size_t bytes, std::size_t alignment) {
  lock held(mutex_);
  if (auto* found = allocate_pinned(bytes, alignment, held)) return found;
  return allocate_fallback(bytes, alignment);
}

// Returns null if the memory cannot be pinned.
std::byte* pinned_memory::allocate_pinned(std::size_t bytes, std::size_t alignment, lock& held) {
  if (bytes > PTRDIFF_MAX) return nullptr;
  auto needed = bytes + alignment;
  for (;;) {
    if (auto* found = take(bytes, alignment)) return found;
    if (must_not_pin()) return nullptr;
    if (wait_for_others(needed, held)) continue;
    if (!make_region(needed, held)) return nullptr;
  }
}

std::byte* pinned_memory::take(std::size_t bytes, std::size_t alignment) {
  auto* found = ranges_.allocate(bytes, alignment);
  if (found) region_of(found).is_free = false;
  return found;
}

bool pinned_memory::must_not_pin() {
  if (!on_reactor_thread()) return false;
  refuse("no region has enough free space, and a reactor must not pin another: set reserve_bytes");
  ++statistics_.fallbacks_on_reactors;
  return true;
}

// If a region that another thread pins has space for this need too, waits for a change and returns
// true.
bool pinned_memory::wait_for_others(std::size_t needed, lock& held) {
  if (awaited_bytes_ >= coming_bytes_ || needed > coming_bytes_ - awaited_bytes_) return false;
  awaited_bytes_ += needed;
  changed_.wait(held);
  awaited_bytes_ -= needed;
  return true;
}

// Pins a region. If the limit prevents that, unpins free regions. Returns false if neither is
// possible.
bool pinned_memory::make_region(std::size_t needed, lock& held) {
  constexpr std::size_t least = std::size_t{32} << 20;
  auto rounded = in_pinned_steps(needed);
  if (left_bytes() >= rounded)
    return add_region(std::max(rounded, std::min(least, left_bytes() / pinned_step * pinned_step)),
                      needed, held);
  if (release_free_regions(held)) return true;
  refuse(fmt::format("the limit is {} bytes", options_.limit_bytes));
  return false;
}

bool pinned_memory::add_region(std::size_t bytes, std::size_t needed, lock& held,
                               bool is_reserved) {
  std::byte* first = nullptr;
  std::string refusal;
  {
    pinning unlocked(*this, held, bytes, needed);
    first = pin(bytes, refusal);
  }
  if (!first) {
    refuse(std::move(refusal));
    return false;
  }
  try {
    regions_.emplace(first, region{bytes, true, is_reserved});
    ranges_.add({first, bytes});
  } catch (...) {
    regions_.erase(first);
    unpin(first);
    throw;
  }
  statistics_.pinned_bytes += bytes;
  return true;
}

// Failures are ignored: memory of another node is only slower.
static std::optional<unsigned> node_near(const std::optional<device>& gpu) noexcept try {
  return gpu ? gpu->numa_node() : std::nullopt;
} catch (...) {
  return std::nullopt;
}

std::byte* pinned_memory::pin(std::size_t bytes, std::string& refusal) const try {
  std::optional<current_device> current;
  if (options_.near) current.emplace(*options_.near);
  capture_guard beside_captures;
  numa_policy near(node_near(options_.near));
  void* memory = nullptr;
  check(api().host_alloc(&memory, bytes, cudaHostAllocPortable),
        fmt::format("pin {} bytes", bytes));
  return static_cast<std::byte*>(memory);
} catch (const error& failure) {
  refusal = failure.what();
  return nullptr;
}

void pinned_memory::refuse(std::string why) {
  if (refusal_.empty()) refusal_ = std::move(why);
}

// Unpins all free regions without the lock. Until then, their bytes count as pinned. Returns
// whether there was one.
bool pinned_memory::release_free_regions(lock& held) {
  std::map<std::byte*, region> released;
  for (auto at = regions_.begin(); at != regions_.end();) {
    auto next = std::next(at);
    if (at->second.is_free && !at->second.is_reserved) {
      ranges_.remove(at->first);
      released.insert(regions_.extract(at));
    }
    at = next;
  }
  held.unlock();
  for (auto& [first, freed] : released) unpin(first);
  held.lock();
  for (auto& [first, freed] : released) statistics_.pinned_bytes -= freed.bytes;
  return !released.empty();
}

void* pinned_memory::allocate_fallback(std::size_t bytes, std::size_t alignment) {
  auto* memory = host_memory().allocate(bytes, alignment);
  try {
    fallbacks_.emplace(memory, bytes);
  } catch (...) {
    host_memory().deallocate(memory, bytes, alignment);
    throw;
  }
  statistics_.fallback_bytes += bytes;
  ++statistics_.fallbacks;
  return memory;
}

void pinned_memory::deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept {
  std::lock_guard held(mutex_);
  if (fallbacks_.erase(memory) > 0) {
    statistics_.fallback_bytes -= bytes;
    return host_memory().deallocate(memory, bytes, alignment);
  }
  if (auto* freed = ranges_.deallocate(static_cast<std::byte*>(memory)))
    regions_.find(freed)->second.is_free = true;
  changed_.notify_all();
}

pinned_memory::statistics pinned_memory::stats() const {
  std::lock_guard held(mutex_);
  return statistics_;
}

std::string pinned_memory::refusal() const {
  std::lock_guard held(mutex_);
  return refusal_;
}

}  // namespace lade::cuda
