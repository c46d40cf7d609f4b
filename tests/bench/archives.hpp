// What the programs share that read archives: options, files, and measuring.

#pragma once

#include <sched.h>
#include <sys/wait.h>

#include <cstddef>
#include <string>
#include <vector>

#include "bench.hpp"

namespace bench {

struct totals {
  std::size_t items = 0;
  std::size_t bytes = 0;

  void add(std::size_t more) {
    ++items;
    bytes += more;
  }
  void add(const totals& other) {
    items += other.items;
    bytes += other.bytes;
  }
};

struct archives {
  std::string directory;
  std::string format;
  std::string size;
  bool in_memory = false;
  std::size_t threads = 1;
  std::size_t processes = 1;
  std::size_t passes = 1;

  std::vector<std::string> paths() const {
    return list_files(directory + "/" + format + "-" + size);
  }
};

// Runs on as few CPUs as there are threads: those of the program's own count too.
inline void use_cpus(std::size_t first, std::size_t count) {
  cpu_set_t all, some;
  CPU_ZERO(&some);
  ::sched_getaffinity(0, sizeof all, &all);
  for (std::size_t cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &all) && seen++ >= first && seen <= first + count) CPU_SET(cpu, &some);
  if (CPU_COUNT(&some) > 0) ::sched_setaffinity(0, sizeof some, &some);
}

inline archives parse_archives(options& given) {
  archives all;
  all.directory = given.text("dir", "build/archives", "what make_archives.py has made");
  all.format = given.choice("format", "tar|npy|npz|npz-deflated|wav|tfrecord", "what is read");
  all.size = given.choice("size", "4k|110k|4m", "of the items");
  all.in_memory = given.choice("source", "memory|disk", "where the files are") == "memory";
  all.threads = given.number("threads", 1, "that read; each has a CPU");
  all.processes = given.number("processes", 1, "that each read all");
  all.passes = given.number("passes", 1, "how often all is read");
  return all;
}

inline std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void touch(const archives& wanted) {
  for (auto& path : wanted.paths()) content_of(path);
}

// Calls `read` in each of the processes and prints what all of them have done together: time is of
// the whole, CPU time of all.
template <class Read>
void measure_archives(std::string_view program, const archives& wanted, Read read) {
  touch(wanted);
  stopwatch clock;
  totals done;
  if (wanted.processes == 1) {
    use_cpus(0, wanted.threads);
    done = read(wanted);
  } else {
    int ends[2];
    if (::pipe(ends) != 0) fail("no pipe");
    for (std::size_t i = 0; i < wanted.processes; ++i) {
      if (::fork() != 0) continue;
      use_cpus(i, 1);
      auto mine = read(wanted);
      ::_exit(::write(ends[1], &mine, sizeof mine) == sizeof mine ? 0 : 1);
    }
    for (std::size_t i = 0; i < wanted.processes; ++i) {
      totals one;
      if (::read(ends[0], &one, sizeof one) != sizeof one) fail("a process has failed");
      done.add(one);
    }
    for (int status = 0; ::wait(&status) > 0;)
      if (status != 0) fail("a process has failed");
  }
  double wall = clock.wall_s(), cpu = clock.cpu_s() + cpu_seconds_of(RUSAGE_CHILDREN);
  auto items = static_cast<double>(done.items);
  report(program)
      .add("format", wanted.format)
      .add("size", wanted.size)
      .add("source", wanted.in_memory ? "memory" : "disk")
      .add("threads", wanted.threads)
      .add("processes", wanted.processes)
      .add("items", done.items)
      .add("item_bytes", done.items > 0 ? done.bytes / done.items : 0)
      .add("wall_s", wall)
      .add("cpu_s", cpu)
      .add("items_per_s", items / wall)
      .add("cpu_us_per_item", cpu / items * 1e6)
      .print();
}

}  // namespace bench
