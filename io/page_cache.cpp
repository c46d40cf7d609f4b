#include "page_cache.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include <unistd.h>

namespace lade::detail {

bool page_cache_use::should_probe() noexcept {
  if (cached_in_a_row_.load(std::memory_order_relaxed) < cached_files_for_trust) return true;
  auto files = files_.load(std::memory_order_relaxed);
  files_.store(files + 1, std::memory_order_relaxed);
  return files % files_per_probe == 0;
}

bool page_cache_use::should_bypass(std::uint64_t file, std::uint64_t missing,
                                   bool hurried) noexcept {
  auto cached = missing > 0 ? 0 : cached_in_a_row_.load(std::memory_order_relaxed) + 1;
  cached_in_a_row_.store(std::min(cached, cached_files_for_trust), std::memory_order_relaxed);
  bool again = was_read(file);
  if (missing == 0) return false;
  return (hurried && !again) || !reserve(missing);
}

bool page_cache_use::reserve(std::uint64_t bytes) noexcept {
  auto left = budget_.load(std::memory_order_relaxed);
  while (!budget_.compare_exchange_weak(left, left < bytes ? 0 : left - bytes,
                                        std::memory_order_relaxed)) {}
  return left >= bytes && left > 0;
}

bool page_cache_use::was_read(std::uint64_t file) noexcept {
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
  auto hash = (file * golden) >> 40;  // 24 bits: the bits of read_
  auto bit = std::uint64_t{1} << (hash % 64);
  auto& word = read_[hash / 64];
  if (word.load(std::memory_order_relaxed) & bit) return true;
  word.fetch_or(bit, std::memory_order_relaxed);
  return false;
}

static std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

page_cache_use& page_cache_use::of_process() {
  static page_cache_use use(memory_figure(text_of("/proc/meminfo"), "MemAvailable:") / 2);
  return use;
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
    device_.release(0);  // the next waiters may need fewer bytes
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

std::optional<std::uint64_t> uncached_bytes(int fd, std::uint64_t bytes) noexcept {
  // As the kernel declares them; C libraries do not yet.
  constexpr long cachestat = 451;
  constexpr std::uint64_t page_bytes = 4096;
  struct {
    std::uint64_t offset, bytes;
  } range{0, bytes};
  struct {
    std::uint64_t pages, dirty, writeback, evicted, recently_evicted;
  } found{};
  if (syscall(cachestat, fd, &range, &found, 0) != 0) return std::nullopt;
  auto pages = (bytes + page_bytes - 1) / page_bytes;
  return (pages - std::min(found.pages, pages)) * page_bytes;
}

}  // namespace lade::detail
