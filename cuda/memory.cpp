#include "capture_guard.hpp"
#include "check.hpp"
#include "numa_policy.hpp"
#include "runtime_api.hpp"

#include <lade/buffer.hpp>
#include <lade/cuda/memory.hpp>
#include <lade/error.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <tuple>

namespace lade::cuda {

pinned_memory::~pinned_memory() {
  for (auto& [first, pinned] : regions_) (void)api().free_host(first);
}

void* pinned_memory::allocate(std::size_t bytes, std::size_t alignment) {
  std::lock_guard lock(mutex_);
  if (auto* found = allocate_pinned(bytes, alignment)) return found;
  return allocate_fallback(bytes, alignment);
}

// Null if the memory cannot be pinned.
std::byte* pinned_memory::allocate_pinned(std::size_t bytes, std::size_t alignment) {
  if (bytes > PTRDIFF_MAX) return nullptr;
  auto* found = ranges_.allocate(bytes, alignment);
  if (!found && add_region(bytes + alignment)) found = ranges_.allocate(bytes, alignment);
  if (found) region_of(found).is_free = false;
  return found;
}

// Of at least so many bytes. Returns whether there is one.
bool pinned_memory::add_region(std::size_t bytes) {
  constexpr std::size_t step = std::size_t{2} << 20, least = std::size_t{32} << 20;
  auto wanted = (bytes + step - 1) / step * step;
  auto left = [&] { return options_.limit_bytes - statistics_.pinned_bytes; };
  if (left() < wanted) release_free_regions();
  if (left() < wanted) {
    refuse("the limit is " + std::to_string(options_.limit_bytes) + " bytes");
    return false;
  }
  bytes = std::max(wanted, std::min(least, left() / step * step));
  auto* first = static_cast<std::byte*>(pin(bytes));
  if (!first) return false;
  try {
    regions_.emplace(first, region{bytes, true});
    ranges_.add({first, bytes});
  } catch (...) {
    regions_.erase(first);
    (void)api().free_host(first);
    throw;
  }
  statistics_.pinned_bytes += bytes;
  return true;
}

void* pinned_memory::pin(std::size_t bytes) try {
  std::optional<current_device> current;
  if (options_.near) current.emplace(*options_.near);
  capture_guard beside_captures;
  numa_policy near(options_.near ? options_.near->numa_node() : std::nullopt);
  void* memory = nullptr;
  check(api().host_alloc(&memory, bytes, cudaHostAllocPortable),
        "pin " + std::to_string(bytes) + " bytes");
  return memory;
} catch (const error& failure) {
  refuse(failure.what());
  return nullptr;
}

void pinned_memory::refuse(std::string why) {
  if (refusal_.empty()) refusal_ = std::move(why);
}

void pinned_memory::release_free_regions() noexcept {
  for (auto at = regions_.begin(); at != regions_.end();) {
    auto next = std::next(at);
    if (at->second.is_free) {
      ranges_.remove(at->first);
      (void)api().free_host(at->first);
      statistics_.pinned_bytes -= at->second.bytes;
      regions_.erase(at);
    }
    at = next;
  }
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
  std::lock_guard lock(mutex_);
  if (fallbacks_.erase(memory) > 0) {
    statistics_.fallback_bytes -= bytes;
    return host_memory().deallocate(memory, bytes, alignment);
  }
  if (auto* freed = ranges_.deallocate(static_cast<std::byte*>(memory)))
    regions_.find(freed)->second.is_free = true;
}

pinned_memory::statistics pinned_memory::stats() const {
  std::lock_guard lock(mutex_);
  return statistics_;
}

std::string pinned_memory::refusal() const {
  std::lock_guard lock(mutex_);
  return refusal_;
}

static constexpr std::size_t device_alignment = 256;  // of all that CUDA allocates

void* device_resource::allocate(std::size_t bytes, std::size_t alignment) {
  auto more = alignment > device_alignment ? alignment : 0;
  auto* memory = do_allocate(bytes + more, own_);
  try {
    current_device current(on_);
    check(api().stream_synchronize(own_.handle()), "allocate memory of a GPU");
    if (more == 0) return memory;
    auto address = reinterpret_cast<std::uintptr_t>(memory);
    auto* first = static_cast<std::byte*>(memory) + (alignment - address % alignment) % alignment;
    std::lock_guard lock(mutex_);
    aligned_.emplace(first, std::pair(memory, bytes + more));
    return first;
  } catch (...) {
    do_deallocate(memory, bytes + more, own_);
    throw;
  }
}

void device_resource::deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept {
  if (alignment > device_alignment) {
    std::lock_guard lock(mutex_);
    auto found = aligned_.find(memory);
    std::tie(memory, bytes) = found->second;
    aligned_.erase(found);
  }
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

void device_memory::trim() { check(api().pool_trim(default_pool(on()), 0), "trim a memory pool"); }

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

// `users`: the streams whose work uses the memory, each with the point behind which it does not,
// if that is known already.
struct device_block::state {
  struct user {
    stream on;
    std::optional<event> last;
  };

  state(device_resource& resource, std::size_t size, const stream& where)
      : from(share_of(resource)), home(where), memory(from->allocate(size, home)), bytes(size) {}
  state(const state&) = delete;
  ~state() {
    bool is_ordered = true;
    for (auto& each : users) is_ordered = let_home_wait(each) && is_ordered;
    if (is_ordered) from->deallocate(memory, bytes, home);
  }

  static bool is_same(const stream& a, const stream& b) noexcept {
    return a.handle() == b.handle() && a.on() == b.on();
  }

  // Returns whether the home stream waits. If the driver refuses, this thread waits instead; if
  // that fails too, work may still use the memory, so it is never freed.
  bool let_home_wait(const user& of) const noexcept {
    try {
      home.wait(of.last ? *of.last : of.on.record());
      return true;
    } catch (...) {
      return api().stream_synchronize(of.on.handle()) == cudaSuccess;
    }
  }

  void set(const stream& on, std::optional<event> last) {
    bool is_of_thread = on.handle() == cudaStreamPerThread;
    if (is_same(on, home) && !is_of_thread) return;
    std::lock_guard lock(mutex);
    auto found = std::ranges::find_if(users, [&](auto& each) { return is_same(each.on, on); });
    if (found == users.end() || is_of_thread)
      users.push_back({on, std::move(last)});
    else
      found->last = std::move(last);
  }

  std::shared_ptr<device_resource> from;
  stream home;
  void* memory;
  std::size_t bytes;
  std::mutex mutex;
  std::vector<user> users;  // guarded by the mutex
};

device_block::device_block(device_resource& from, std::size_t bytes, const stream& home) {
  if (home.handle() == cudaStreamPerThread)
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

// CUDA's default stream of a thread has one handle in all threads: it must be recorded on this one.
void device_block::use_on(const stream& user) const {
  bool is_of_thread = user.handle() == cudaStreamPerThread;
  state_->set(user, is_of_thread ? std::optional(user.record()) : std::nullopt);
}

void device_block::record_on(const stream& user) const { state_->set(user, user.record()); }

}  // namespace lade::cuda
