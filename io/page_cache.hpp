// What the kernel keeps of files, and how much more it may.

#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace lade::detail {

// What is left of the memory that files may fill. Any thread.
class page_cache_room {
 public:
  explicit page_cache_room(std::uint64_t bytes) noexcept : bytes_(bytes) {}

  // Takes the bytes of a file. False, from then on, if there are not as many.
  bool take(std::uint64_t bytes) noexcept;

  // That of this process: half of the memory that was available when it first asked.
  static page_cache_room& of_process();

 private:
  std::atomic<std::uint64_t> bytes_;
};

// The figure in bytes behind `name`, which ends with a colon, in text like that of /proc/meminfo,
// whose figures are kibibytes; 0 if there is none.
std::uint64_t memory_figure(const std::string& text, const std::string& name);

// Whether the kernel says (cachestat(2), Linux 6.5) that it does not have all of the first `bytes`
// bytes of a file.
bool misses_page_cache(int fd, std::uint64_t bytes) noexcept;

}  // namespace lade::detail
