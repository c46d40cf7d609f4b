#include "page_cache.hpp"

#include <fstream>
#include <iterator>
#include <sstream>

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
