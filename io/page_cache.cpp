#include "page_cache.hpp"

#include <array>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include <unistd.h>

namespace lade::detail {

bool page_cache_room::take(std::uint64_t bytes) noexcept {
  auto left = bytes_.load(std::memory_order_relaxed);
  while (!bytes_.compare_exchange_weak(left, left < bytes ? 0 : left - bytes,
                                       std::memory_order_relaxed)) {}
  return left >= bytes && left > 0;
}

static std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

page_cache_room& page_cache_room::of_process() {
  static page_cache_room room(memory_figure(text_of("/proc/meminfo"), "MemAvailable:") / 2);
  return room;
}

direct_reads& direct_reads::at(dev_t device) noexcept {
  static std::array<direct_reads, 61> devices;
  return devices[device % devices.size()];
}

bool direct_reads::take(std::size_t bytes) noexcept {
  if (bytes > max_bytes - in_flight_) return false;
  in_flight_ += bytes;
  return true;
}

void direct_reads::release(std::size_t bytes) noexcept {
  wait_list served;
  {
    std::lock_guard lock(mutex_);
    in_flight_ -= bytes;
    while (auto* first = static_cast<awaiter*>(waiters_.first())) {
      if (!take(first->bytes_)) break;
      served.push_back(*waiters_.settle_first());
    }
  }
  served.resume_all();
}

direct_reads::share direct_reads::awaiter::await_resume() {
  try {
    finish("read past the page cache");
  } catch (...) {
    device_.release(0);  // those behind it may want less
    throw;
  }
  return {device_, bytes_};
}

direct_reads::share::share(share&& other) noexcept
    : from_(std::exchange(other.from_, nullptr)), bytes_(other.bytes_) {}

direct_reads::share& direct_reads::share::operator=(share&& other) noexcept {
  std::swap(from_, other.from_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

direct_reads::share::~share() {
  if (from_) from_->release(bytes_);
}

std::uint64_t memory_figure(const std::string& text, const std::string& name) {
  std::istringstream words(text);
  std::string word;
  std::uint64_t kibibytes = 0;
  while (words >> word)
    if (word == name && words >> kibibytes) return kibibytes * 1024;
  return 0;
}

bool misses_page_cache(int fd, std::uint64_t bytes) noexcept {
  // As the kernel declares them; C libraries do not yet.
  constexpr long cachestat = 451;
  constexpr std::uint64_t page_bytes = 4096;
  struct {
    std::uint64_t offset, bytes;
  } range{0, bytes};
  struct {
    std::uint64_t pages, dirty, writeback, evicted, recently_evicted;
  } found{};
  if (syscall(cachestat, fd, &range, &found, 0) != 0) return false;
  return found.pages < (bytes + page_bytes - 1) / page_bytes;
}

}  // namespace lade::detail
