#include <lade/process.hpp>
#include <lade/support/json.hpp>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include <dirent.h>
#include <sys/resource.h>

namespace lade {

// The text of a file of /proc/self; empty if it cannot be read.
static std::string proc_text(const char* name) {
  std::ifstream file(std::string("/proc/self/") + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Uses readdir, because std::filesystem::directory_iterator terminates if memory is exhausted.
static std::optional<std::uint64_t> open_descriptors() {
  auto close = [](DIR* directory) { (void)closedir(directory); };
  std::unique_ptr<DIR, decltype(close)> directory(opendir("/proc/self/fd"));
  if (!directory) return std::nullopt;
  std::uint64_t count = 0;
  while (const auto* entry = readdir(directory.get()))
    if (entry->d_name[0] != '.') ++count;
  return count - 1;  // without the descriptor of the directory
}

static std::chrono::nanoseconds duration_of(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

process_statistics read_process_statistics(const process_options& options) {
  using detail::proc_number;
  process_statistics now;
  auto status = proc_text("status");
  now.rss_bytes = proc_number(status, "VmRSS");
  now.threads = proc_number(status, "Threads");
  if (options.pss) now.pss_bytes = proc_number(proc_text("smaps_rollup"), "Pss");
  auto io = proc_text("io");
  now.disk_read_bytes = proc_number(io, "read_bytes");
  now.disk_written_bytes = proc_number(io, "write_bytes");
  if (auto network = detail::network_bytes_of(proc_text("net/dev"))) {
    now.network_in_bytes = network->in;
    now.network_out_bytes = network->out;
  }
  rusage used{};
  if (getrusage(RUSAGE_SELF, &used) == 0) {
    now.cpu_user = duration_of(used.ru_utime);
    now.cpu_system = duration_of(used.ru_stime);
  }
  now.descriptors = open_descriptors();
  return now;
}

static std::string json_or_null(const std::optional<std::uint64_t>& number) {
  return number ? std::to_string(*number) : "null";
}

static std::string json_or_null(const std::optional<std::chrono::nanoseconds>& time) {
  return time ? support::json_of(std::chrono::duration<double>(*time).count(), 6) : "null";
}

std::string to_json(const process_statistics& process) {
  const std::pair<const char*, std::string> members[] = {
      {"rss_bytes", json_or_null(process.rss_bytes)},
      {"pss_bytes", json_or_null(process.pss_bytes)},
      {"cpu_user", json_or_null(process.cpu_user)},
      {"cpu_system", json_or_null(process.cpu_system)},
      {"disk_read_bytes", json_or_null(process.disk_read_bytes)},
      {"disk_written_bytes", json_or_null(process.disk_written_bytes)},
      {"network_in_bytes", json_or_null(process.network_in_bytes)},
      {"network_out_bytes", json_or_null(process.network_out_bytes)},
      {"threads", json_or_null(process.threads)},
      {"descriptors", json_or_null(process.descriptors)},
  };
  return support::json_object(members);
}

namespace detail {

static constexpr std::string_view proc_blanks = " \t";

// Takes the first line off a text.
static std::string_view take_line(std::string_view& text) {
  auto end = text.find('\n');
  auto line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

// Takes a number off the front of a text, and the blanks before it.
static std::optional<std::uint64_t> take_number(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(proc_blanks), text.size()));
  std::uint64_t number = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

std::optional<std::uint64_t> proc_number(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    auto line = take_line(text);
    if (!line.starts_with(name) || line.substr(name.size(), 1) != ":") continue;
    line.remove_prefix(name.size() + 1);
    auto number = take_number(line);
    if (!number || line.empty()) return number;
    constexpr auto most = std::numeric_limits<std::uint64_t>::max() / 1024;
    return line == " kB" && *number <= most ? std::optional(*number * 1024) : std::nullopt;
  }
  return std::nullopt;
}

// Lines are "  eth0: 1 2 3 4 5 6 7 8 9 ...": the first number is the bytes received, the ninth the
// bytes sent.
std::optional<network_bytes> network_bytes_of(std::string_view net_dev) {
  take_line(net_dev);
  take_line(net_dev);  // two lines of headings
  if (net_dev.empty()) return std::nullopt;
  network_bytes sum;
  while (!net_dev.empty()) {
    auto line = take_line(net_dev);
    auto colon = line.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    auto name = line.substr(0, colon);
    name.remove_prefix(std::min(name.find_first_not_of(proc_blanks), name.size()));
    line.remove_prefix(colon + 1);
    std::optional<std::uint64_t> columns[9];
    for (auto& column : columns) {
      column = take_number(line);
      if (!column) return std::nullopt;
    }
    if (name == "lo") continue;
    sum.in += *columns[0];
    sum.out += *columns[8];
  }
  return sum;
}

}  // namespace detail
}  // namespace lade
