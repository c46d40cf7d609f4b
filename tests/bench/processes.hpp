// Readers on several threads of one process, or in several processes: each has a CPU of its own.

#pragma once

#include <sched.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstddef>

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

// Runs on as few CPUs as there are threads: those of the program's own count too.
inline void use_cpus(std::size_t first, std::size_t count) {
  cpu_set_t all, some;
  CPU_ZERO(&some);
  ::sched_getaffinity(0, sizeof all, &all);
  for (std::size_t cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &all) && seen++ >= first && seen <= first + count) CPU_SET(cpu, &some);
  if (CPU_COUNT(&some) > 0) ::sched_setaffinity(0, sizeof some, &some);
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
one_process read_in_processes(std::size_t processes, Make make) {
  int results[2], ready[2], go[2];
  if (::pipe(results) != 0 || ::pipe(ready) != 0 || ::pipe(go) != 0) fail("no pipes");
  for (std::size_t i = 0; i < processes; ++i) {
    if (::fork() != 0) continue;
    use_cpus(i, 1);
    auto mine = read_in_process(make, ready[1], go[0]);
    ::_exit(::write(results[1], &mine, sizeof mine) == sizeof mine ? 0 : 1);
  }
  char bytes[64] = {};
  for (std::size_t i = 0; i < processes; ++i)
    if (::read(ready[0], bytes, 1) != 1) fail("a process has failed");
  if (::write(go[1], bytes, processes) < 0) fail("a process has failed");
  one_process all;
  for (std::size_t i = 0; i < processes; ++i) {
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

// What readers do together that `make` returns: one of so many threads, or one in each of so many
// processes. A reader has `warm_up()` and `read()`, which returns totals.
template <class Make>
one_process read_by(std::size_t threads, std::size_t processes, Make make) {
  if (processes > 1) return read_in_processes(processes, make);
  use_cpus(0, threads);
  return read_in_process(make);
}

}  // namespace bench
