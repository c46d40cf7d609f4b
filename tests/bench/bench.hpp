// What every benchmark program shares: options of the form --name value, clocks, a result printed
// as one line of JSON, and memory in huge pages.

#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench {

[[noreturn]] inline void fail(std::string_view what) {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(what.size()), what.data());
  std::exit(1);
}

// Reads `--name value` and `--name` (a flag). Ask for every option once, then call `done`, which
// prints the help or refuses what nobody asked for.
class options {
 public:
  options(int argc, char** argv, std::string_view about) : help_(about) {
    help_ += "\n\n";
    for (int i = 1; i < argc; ++i) {
      std::string_view name = argv[i];
      if (!name.starts_with("--")) fail("unexpected argument: " + std::string(name));
      bool has_value = i + 1 < argc && !std::string_view(argv[i + 1]).starts_with("--");
      given_[std::string(name.substr(2))] = has_value ? argv[++i] : "";
    }
  }

  std::string text(const std::string& name, const std::string& standard, std::string_view help) {
    describe(name, standard, help);
    auto found = given_.find(name);
    if (found == given_.end()) return standard;
    std::string value = found->second;
    given_.erase(found);
    return value;
  }

  std::size_t number(const std::string& name, std::size_t standard, std::string_view help) {
    std::string value = text(name, std::to_string(standard), help);
    char* end = nullptr;
    std::size_t result = std::strtoull(value.c_str(), &end, 10);
    if (value.empty() || *end != '\0') fail("--" + name + " wants a number, not '" + value + "'");
    return result;
  }

  bool flag(const std::string& name, std::string_view help) {
    describe(name, "", help);
    return given_.erase(name) > 0;
  }

  // One of the words of `choices`, which are separated by '|'. The first is the standard.
  std::string choice(const std::string& name, std::string_view choices, std::string_view help) {
    std::string value = text(name, std::string(choices.substr(0, choices.find('|'))),
                             std::string(choices) + ": " + std::string(help));
    auto between_bars = [](std::string_view text) {
      return std::string("|").append(text).append("|");
    };
    if (between_bars(choices).find(between_bars(value)) == std::string::npos)
      fail("--" + name + " wants one of " + std::string(choices) + ", not '" + value + "'");
    return value;
  }

  void done() {
    if (given_.erase("help") > 0) {
      std::fputs(help_.c_str(), stdout);
      std::exit(0);
    }
    if (!given_.empty()) fail("unknown option: --" + given_.begin()->first);
  }

 private:
  void describe(const std::string& name, std::string_view standard, std::string_view help) {
    help_ += "  --" + name + "  " + std::string(help);
    if (!standard.empty()) help_ += " (" + std::string(standard) + ")";
    help_ += "\n";
  }

  std::map<std::string, std::string> given_;
  std::string help_;
};

// The CPU time, user and system, of this process or of its children that have ended.
inline double cpu_seconds_of(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  auto seconds = [](timeval t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Wall and CPU time (user and system, all threads of the process) since construction.
class stopwatch {
 public:
  double wall_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }
  double cpu_s() const { return cpu_now() - cpu_began_; }

 private:
  static double cpu_now() { return cpu_seconds_of(RUSAGE_SELF); }

  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  double cpu_began_ = cpu_now();
};

// The value that a share of the others is below: 0.5 for the median.
inline double quantile(std::vector<double> values, double share) {
  auto rank = static_cast<std::size_t>(share * static_cast<double>(values.size()));
  auto found = values.begin() + static_cast<std::ptrdiff_t>(std::min(rank, values.size() - 1));
  std::nth_element(values.begin(), found, values.end());
  return *found;
}

inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

// Of this program: what getrusage says may be the peak of the one that started it.
inline double peak_rss_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (double kib = 0; word == "VmHWM:" && status >> kib) return kib / 1024;
  fail("/proc/self/status states no peak of the memory");
}

// A result: one line of JSON with the fields in the order they were added.
class report {
 public:
  explicit report(std::string_view program) { add("program", program); }

  report& add(std::string_view name, std::string_view value) {
    std::string quoted(1, '"');
    return raw(name, quoted.append(value).append(1, '"'));
  }
  report& add(std::string_view name, const std::string& value) {
    return add(name, std::string_view(value));
  }
  report& add(std::string_view name, const char* value) {
    return add(name, std::string_view(value));
  }
  report& add(std::string_view name, std::size_t value) { return raw(name, std::to_string(value)); }
  report& add(std::string_view name, double value) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.6g", value);
    return raw(name, digits);
  }
  void print() const {
    std::printf("{%s}\n", fields_.c_str());
    std::fflush(stdout);
  }

 private:
  report& raw(std::string_view name, std::string_view value) {
    if (!fields_.empty()) fields_ += ", ";
    fields_.append(1, '"').append(name).append("\": ").append(value);
    return *this;
  }

  std::string fields_;
};

// A result in nanoseconds for each of `items` things done since `clock` was started.
inline void print_each(std::string_view name, const stopwatch& clock, std::size_t items) {
  double wall = clock.wall_s(), cpu = clock.cpu_s(), count = static_cast<double>(items);
  report(name)
      .add("items", items)
      .add("wall_ns", wall * 1e9 / count)
      .add("cpu_ns", cpu * 1e9 / count)
      .print();
}

// The regular files under `directory`, sorted.
inline std::vector<std::string> list_files(const std::string& directory) {
  std::error_code failure;
  std::vector<std::string> paths;
  auto entries = std::filesystem::recursive_directory_iterator(directory, failure);
  if (failure) fail(directory + ": " + failure.message());
  for (const auto& entry : entries)
    if (entry.is_regular_file()) paths.push_back(entry.path().string());
  if (paths.empty()) fail(directory + ": no files");
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Throws the contents of these files out of the page cache, but leaves the kernel knowing where
// they are. Without root, only these files are thrown out.
inline void drop_caches(const std::vector<std::string>& paths) {
  ::sync();
  int control = ::open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
  bool dropped = control >= 0 && ::write(control, "3", 1) == 1;
  if (control >= 0) ::close(control);
  for (const auto& path : paths) {
    struct stat about;
    ::stat(path.c_str(), &about);
    if (dropped) continue;
    int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    ::close(file);
  }
}

// Memory aligned to 2 MiB that asks for huge pages: a first touch of 4 KiB pages costs more than
// the work of filling them. Kept until the program ends.
inline std::byte* huge_memory(std::size_t bytes) {
  constexpr std::size_t huge = std::size_t{2} << 20;
  bytes = (bytes + huge - 1) / huge * huge;
  void* memory = std::aligned_alloc(huge, bytes);
  if (memory == nullptr) fail("out of memory");
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

// A well mixed number from a counter (splitmix64): random choices that depend on nothing else.
inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// A stream of random numbers from one seed.
class random_stream {
 public:
  explicit random_stream(std::uint64_t seed) : state_(mix(seed)) {}
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double between(double low, double high) { return low + (high - low) * unit(); }
  std::size_t below(std::size_t n) {
    return static_cast<std::size_t>(unit() * static_cast<double>(n));
  }
  std::uint64_t next() { return state_ = mix(state_); }

 private:
  std::uint64_t state_;
};

}  // namespace bench
