// What the process uses of its machine.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lade {

// Figures since the process began, or of this moment. One that the system does not tell, as it may
// be in a container or on a kernel without it, is empty.
struct process_statistics {
  std::optional<std::uint64_t> rss_bytes;  // memory in use, what others use too included
  std::optional<std::uint64_t> pss_bytes;  // the same with shared pages divided by their users
  std::optional<std::chrono::nanoseconds> cpu_user;
  std::optional<std::chrono::nanoseconds> cpu_system;
  std::optional<std::uint64_t> disk_read_bytes;     // not out of the page cache
  std::optional<std::uint64_t> disk_written_bytes;  // into the page cache
  std::optional<std::uint64_t> network_in_bytes;    // of all processes that share its interfaces,
  std::optional<std::uint64_t> network_out_bytes;   // those of the machine itself left out
  std::optional<std::uint64_t> threads;
  std::optional<std::uint64_t> descriptors;  // open ones
};

struct process_options {
  // Reads pss_bytes, for which the kernel walks through all pages: milliseconds for every
  // gigabyte, in which the process maps no memory.
  bool pss = false;
};

// Reads the figures of this process: without pss_bytes, in some tens of microseconds. Any thread.
process_statistics read_process_statistics(const process_options& options = {});

// One line of JSON with the same names as above; times in seconds, null for what is empty.
std::string to_json(const process_statistics& process);

namespace detail {

// The number behind `name:` in a text of such lines, times 1024 if " kB" follows it.
std::optional<std::uint64_t> proc_number(std::string_view text, std::string_view name);

// The bytes that all interfaces but "lo" have received and sent, from the text of net/dev. Nothing
// if a line is not as it should be.
struct network_bytes {
  std::uint64_t in = 0;
  std::uint64_t out = 0;
};
std::optional<network_bytes> network_bytes_of(std::string_view net_dev);

}  // namespace detail
}  // namespace lade
