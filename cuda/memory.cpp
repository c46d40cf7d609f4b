#include "capture_guard.hpp"
#include "check.hpp"
#include "numa_policy.hpp"
#include "runtime_api.hpp"
#include "stream_users.hpp"

#include <lade/buffer.hpp>
#include <lade/cuda/memory.hpp>
#include <lade/detail/activity.hpp>
#include <lade/detail/require.hpp>
#include <lade/error.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <system_error>
#include <tuple>

namespace lade::cuda {

static constexpr std::size_t pinned_step = std::size_t{2} << 20;  // of the sizes of regions

static constexpr std::size_t in_pinned_steps(std::size_t bytes) noexcept {
  return (bytes + pinned_step - 1) / pinned_step * pinned_step;
}

// A region that this thread pins, without the lock, and the need that it is for.
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
    lade::detail::refuse_value("pinned_memory", "reserve_bytes", std::to_string(reserved),
                               "at most limit_bytes, " + std::to_string(limit));
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

// Null if the memory cannot be pinned.
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
  if (!lade::detail::this_activity) return false;
  refuse("no region had room, and a reactor must not pin another: set reserve_bytes");
  ++statistics_.fallbacks_on_reactors;
  return true;
}

// If another thread pins a region that has room for both, waits for a change, and returns true.
bool pinned_memory::wait_for_others(std::size_t needed, lock& held) {
  if (awaited_bytes_ >= coming_bytes_ || needed > coming_bytes_ - awaited_bytes_) return false;
  awaited_bytes_ += needed;
  changed_.wait(held);
  awaited_bytes_ -= needed;
  return true;
}

// Pins a region, or unpins free ones that stand in its way. Returns false if there can be none.
bool pinned_memory::make_region(std::size_t needed, lock& held) {
  constexpr std::size_t least = std::size_t{32} << 20;
  auto wanted = in_pinned_steps(needed);
  if (left_bytes() >= wanted)
    return add_region(std::max(wanted, std::min(least, left_bytes() / pinned_step * pinned_step)),
                      needed, held);
  if (release_free_regions(held)) return true;
  refuse("the limit is " + std::to_string(options_.limit_bytes) + " bytes");
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

// Memory of another node is only slower.
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
        "pin " + std::to_string(bytes) + " bytes");
  return static_cast<std::byte*>(memory);
} catch (const error& failure) {
  refusal = failure.what();
  return nullptr;
}

void pinned_memory::refuse(std::string why) {
  if (refusal_.empty()) refusal_ = std::move(why);
}

// They count as pinned until the driver has unpinned them. Returns whether there was one.
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

static std::error_code no_memory() noexcept {
  return std::make_error_code(std::errc::not_enough_memory);
}

std::size_t detail::aligned_addresses::all_bytes(std::size_t bytes, std::size_t alignment) {
  if (bytes > PTRDIFF_MAX) throw error(no_memory(), "allocate " + std::to_string(bytes) + " bytes");
  return bytes + extra_bytes(alignment);
}

void* detail::aligned_addresses::align(void* memory, std::size_t bytes, std::size_t alignment) {
  if (extra_bytes(alignment) == 0) return memory;
  auto address = reinterpret_cast<std::uintptr_t>(memory);
  auto* first = static_cast<std::byte*>(memory) + (alignment - address % alignment) % alignment;
  std::lock_guard lock(mutex_);
  allocations_.emplace(first, std::pair(memory, bytes));
  return first;
}

std::pair<void*, std::size_t> detail::aligned_addresses::take(void* aligned, std::size_t bytes,
                                                              std::size_t alignment) noexcept {
  if (extra_bytes(alignment) == 0) return {aligned, bytes};
  std::lock_guard lock(mutex_);
  auto found = allocations_.find(aligned);
  auto allocation = found->second;
  allocations_.erase(found);
  return allocation;
}

managed_memory::managed_memory(device on) : on_(on) {
  constexpr auto doing = "use managed memory";
  int is_concurrent = 0;
  check(api().device_get_attribute(&is_concurrent, cudaDevAttrConcurrentManagedAccess, on.index()),
        doing);
  if (!is_concurrent)
    throw error(errc::unsupported, doing,
                "the CPU cannot use it while kernels run on GPU " + std::to_string(on.index()));
}

void* managed_memory::allocate(std::size_t bytes, std::size_t alignment) {
  current_device current(on_);
  capture_guard beside_captures;
  auto all = addresses_.all_bytes(bytes, alignment);
  void* memory = nullptr;
  check(api().malloc_managed(&memory, all, cudaMemAttachGlobal),
        "allocate " + std::to_string(bytes) + " bytes of managed memory");
  try {
    auto* aligned = addresses_.align(memory, all, alignment);
    used_bytes_ += bytes;
    return aligned;
  } catch (...) {
    (void)api().free_memory(memory);
    throw;
  }
}

void managed_memory::deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept {
  capture_guard beside_captures;
  (void)api().free_memory(addresses_.take(memory, bytes, alignment).first);
  used_bytes_ -= bytes;
}

void* device_resource::allocate(std::size_t bytes, const stream& order) {
  auto* memory = do_allocate(bytes, order);
  if (memory || bytes == 0) return memory;
  throw error(no_memory(), "allocate " + std::to_string(bytes) + " bytes of " + std::string(name()),
              "the resource returned null");
}

void* device_resource::allocate(std::size_t bytes, std::size_t alignment) {
  auto all = addresses_.all_bytes(bytes, alignment);
  auto* memory = allocate(all, own_);
  try {
    current_device current(on_);
    capture_guard beside_captures;
    check(api().stream_synchronize(own_.handle()), "allocate memory of a GPU");
    return addresses_.align(memory, all, alignment);
  } catch (...) {
    do_deallocate(memory, all, own_);
    throw;
  }
}

void device_resource::deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept {
  std::tie(memory, bytes) = addresses_.take(memory, bytes, alignment);
  do_deallocate(memory, bytes, own_);
}

static cudaMemPool_t default_pool(device on) {
  cudaMemPool_t pool = nullptr;
  check(api().get_default_pool(&pool, on.index()), "use the memory pool of a GPU");
  return pool;
}

device_memory::device_memory(device on, const device_memory_options& options)
    : device_resource(on) {
  constexpr auto doing = "use the memory pool of a GPU";
  auto pool = default_pool(on);
  std::uint64_t keep = 0;
  check(api().pool_get_attribute(pool, cudaMemPoolAttrReleaseThreshold, &keep), doing);
  if (keep != 0 && !options.keep_bytes) return;  // somebody has chosen it
  keep = options.keep_bytes.value_or(std::numeric_limits<std::uint64_t>::max());
  check(api().pool_set_attribute(pool, cudaMemPoolAttrReleaseThreshold, &keep), doing);
}

void device_memory::trim() {
  capture_guard beside_captures;
  check(api().pool_trim(default_pool(on()), 0), "trim a memory pool");
}

void* device_memory::do_allocate(std::size_t bytes, const stream& order) {
  current_device current(on());
  void* memory = nullptr;
  check(api().malloc_async(&memory, bytes, order.handle()),
        "allocate " + std::to_string(bytes) + " bytes of GPU " + std::to_string(on().index()));
  used_bytes_ += bytes;
  return memory;
}

// After a failure of the device there is nothing to be freed any more.
void device_memory::do_deallocate(void* memory, std::size_t bytes, const stream& order) noexcept {
  used_bytes_ -= bytes;
  try {
    current_device current(on());
    check(api().free_async(memory, order.handle()), "free memory of a GPU");
  } catch (const error&) {}
}

static std::shared_ptr<device_resource> share_of(device_resource& resource) {
  return std::static_pointer_cast<device_resource>(lade::detail::share_of(resource));
}

struct device_block::state {
  state(device_resource& resource, std::size_t size, const stream& where)
      : from(share_of(resource)), home(where), memory(from->allocate(size, home)), bytes(size) {}
  state(const state&) = delete;
  ~state() {
    bool is_ordered = true;
    for (auto& each : users.all()) is_ordered = let_home_wait(each) && is_ordered;
    if (is_ordered) from->deallocate(memory, bytes, home);
  }

  // Returns whether the home stream waits. If the driver refuses, this thread waits instead; if
  // that fails too, work may still use the memory, so it is never freed.
  bool let_home_wait(const stream_users::user& of) const noexcept {
    try {
      home.wait(of.last ? *of.last : of.on.record());
      return true;
    } catch (...) {
      return wait_here(of);
    }
  }

  static bool wait_here(const stream_users::user& of) noexcept try {
    current_device current(of.on.on());
    capture_guard beside_captures;
    auto result = of.last ? api().event_synchronize(of.last->handle())
                          : api().stream_synchronize(of.on.handle());
    return result == cudaSuccess;
  } catch (...) {
    return false;
  }

  bool is_home(const stream& on) const noexcept {
    return stream_users::is_same(on, home) && !stream_users::is_of_thread(on);
  }

  std::shared_ptr<device_resource> from;
  stream home;
  void* memory;
  std::size_t bytes;
  std::mutex mutex;
  stream_users users;  // guarded by the mutex
};

device_block::device_block(device_resource& from, std::size_t bytes, const stream& home) {
  if (stream_users::is_of_thread(home))
    throw error(errc::invalid_argument, "allocate memory of a GPU",
                "a thread's default stream is another one in other threads");
  state_ = std::make_shared<state>(from, bytes, home);
}

std::span<std::byte> device_block::bytes() const noexcept {
  return {static_cast<std::byte*>(state_->memory), state_->bytes};
}

const stream& device_block::home() const noexcept { return state_->home; }

buffer device_block::slice(std::size_t offset, std::size_t bytes) const {
  return buffer(state_, this->bytes(), state_->from->where()).slice(offset, bytes);
}

void device_block::use_on(const stream& user) const {
  if (state_->is_home(user)) return;
  std::lock_guard lock(state_->mutex);
  state_->users.use_on(user);
}

void device_block::record_on(const stream& user) const {
  auto last = user.record();
  if (state_->is_home(user)) return;
  std::lock_guard lock(state_->mutex);
  state_->users.set(user, std::move(last));
}

}  // namespace lade::cuda
