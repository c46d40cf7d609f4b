// process: the resources that this process uses.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lade {

// Values since the process began, or at this moment. A value is empty if the system does not
// provide it, as in some containers and with some kernels.
struct process_statistics {
  std::optional<std::uint64_t> rss_bytes;  // resident memory, shared pages included
  std::optional<std::uint64_t> pss_bytes;  // the same; shared pages divided by their users
  std::optional<std::chrono::nanoseconds> cpu_user;
  std::optional<std::chrono::nanoseconds> cpu_system;
  std::optional<std::uint64_t> disk_read_bytes;     // read from the disk, without page cache hits
  std::optional<std::uint64_t> disk_written_bytes;  // written into the page cache
  std::optional<std::uint64_t>
      network_in_bytes;  // all processes on its interfaces, without loopback
  std::optional<std::uint64_t> network_out_bytes;  // the same, sent
  std::optional<std::uint64_t> threads;
  std::optional<std::uint64_t> descriptors;  // open descriptors
};

struct process_options {
  // Reads pss_bytes, for which the kernel walks through all pages. That takes milliseconds per
  // gigabyte, in which the process maps no memory.
  bool pss = false;
};

// Reads the values of this process: in some tens of microseconds, without pss_bytes. Any thread.
process_statistics read_process_statistics(const process_options& options = {});

// One line of JSON with the member names above. Times are in seconds; empty values are null.
std::string to_json(const process_statistics& process);

namespace detail {

// The number behind `name:` in a text of such lines, times 1024 if " kB" follows the number.
std::optional<std::uint64_t> proc_number(std::string_view text, std::string_view name);

// The bytes that all interfaces except "lo" have received and sent, from the text of net/dev.
// Nothing if a line is malformed.
struct network_bytes {
  std::uint64_t in = 0;
  std::uint64_t out = 0;
};
std::optional<network_bytes> network_bytes_of(std::string_view net_dev);

}  // namespace detail
}  // namespace lade
