// What the programs share that read archives: options, files, and measuring.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench.hpp"
#include "processes.hpp"

namespace bench {

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

// Prints what the readers that `make` returns have done together.
template <class Make>
void measure_archives(std::string_view program, const archives& wanted, Make make) {
  for (auto& path : wanted.paths()) content_of(path);
  auto all = read_by(wanted.threads, wanted.processes, make);
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
