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

// Reads all as often as was asked for, after a reading that is not measured: memory that is used
// for the first time costs more than reading.
struct one_process {
  totals done;
  double wall_s = 0;
  double cpu_s = 0;
};

template <class Make>
one_process read_in_process(Make make, int ready = -1, int go = -1) {
  auto reader = make();
  reader.warm_up();
  char byte = 0;
  if (ready >= 0 && (::write(ready, &byte, 1) != 1 || ::read(go, &byte, 1) != 1)) ::_exit(1);
  stopwatch clock;
  auto done = reader.read();
  return {done, clock.wall_s(), clock.cpu_s()};
}

// The same in several processes, each on a CPU of its own, which begin at the same time.
template <class Make>
one_process read_in_processes(const archives& wanted, Make make) {
  int results[2], ready[2], go[2];
  if (::pipe(results) != 0 || ::pipe(ready) != 0 || ::pipe(go) != 0) fail("no pipes");
  for (std::size_t i = 0; i < wanted.processes; ++i) {
    if (::fork() != 0) continue;
    use_cpus(i, 1);
    auto mine = read_in_process(make, ready[1], go[0]);
    ::_exit(::write(results[1], &mine, sizeof mine) == sizeof mine ? 0 : 1);
  }
  char bytes[64] = {};
  for (std::size_t i = 0; i < wanted.processes; ++i)
    if (::read(ready[0], bytes, 1) != 1) fail("a process has failed");
  if (::write(go[1], bytes, wanted.processes) < 0) fail("a process has failed");
  one_process all;
  for (std::size_t i = 0; i < wanted.processes; ++i) {
    one_process one;
    if (::read(results[0], &one, sizeof one) != sizeof one) fail("a process has failed");
    all.done.add(one.done);
    all.wall_s = std::max(all.wall_s, one.wall_s);
    all.cpu_s += one.cpu_s;
  }
  for (int status = 0; ::wait(&status) > 0;)
    if (status != 0) fail("a process has failed");
  return all;
}

// Prints what the readers that `make` returns have done together.
template <class Make>
void measure_archives(std::string_view program, const archives& wanted, Make make) {
  for (auto& path : wanted.paths()) content_of(path);
  one_process all;
  if (wanted.processes == 1) {
    use_cpus(0, wanted.threads);
    all = read_in_process(make);
  } else {
    all = read_in_processes(wanted, make);
  }
  auto items = static_cast<double>(all.done.items);
  report(program)
      .add("format", wanted.format)
      .add("size", wanted.size)
      .add("source", wanted.in_memory ? "memory" : "disk")
      .add("threads", wanted.threads)
      .add("processes", wanted.processes)
      .add("items", all.done.items)
      .add("item_bytes", all.done.items > 0 ? all.done.bytes / all.done.items : 0)
      .add("wall_s", all.wall_s)
      .add("cpu_s", all.cpu_s)
      .add("items_per_s", items / all.wall_s)
      .add("cpu_us_per_item", all.cpu_s / items * 1e6)
      .print();
}

}  // namespace bench
