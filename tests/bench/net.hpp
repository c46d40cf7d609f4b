// What the programs share that read objects of a web server: options, requests, and the report.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench.hpp"

namespace bench {

struct object_request {
  std::string url;
  std::size_t offset = 0;
  std::size_t bytes = 0;  // 0: the whole object
};

// A directory of objects of make_objects.py.
struct objects {
  std::string url;
  std::string size;
  std::size_t count = 0;
  std::size_t depth = 1;
  bool by_ranges = false;

  std::size_t object_bytes() const {
    if (size == "4k") return 4096;
    if (size == "110k") return 110'000;
    return size == "100m" ? 100'000'000 : std::size_t{1} << 30;
  }

  std::size_t different() const { return size == "1g" ? 1 : size == "100m" ? 4 : 1000; }

  std::vector<object_request> requests() const {
    constexpr std::size_t range = std::size_t{8} << 20;
    std::vector<object_request> all;
    for (std::size_t i = 0; i < count; ++i) {
      auto name = url + "/" + size + "/" + std::to_string(i % different());
      if (!by_ranges) {
        all.push_back({std::move(name)});
        continue;
      }
      for (std::size_t at = 0; at < object_bytes(); at += range)
        all.push_back({name, at, std::min(range, object_bytes() - at)});
    }
    return all;
  }
};

inline objects parse_objects(options& given) {
  objects all;
  all.url = given.text("url", "http://127.0.0.1:8080/bucket", "what has the objects");
  all.size = given.choice("size", "110k|4k|100m|1g", "of the objects");
  all.count = given.number("objects", 1000, "how many are read");
  all.depth = given.number("depth", 8, "requests at a time");
  all.by_ranges = given.flag("ranges", "by ranges of 8 MiB");
  return all;
}

inline report report_objects(std::string_view program, const objects& wanted,
                             const stopwatch& clock) {
  double wall = clock.wall_s(), cpu = clock.cpu_s(), count = static_cast<double>(wanted.count);
  auto bytes = wanted.count * wanted.object_bytes();
  report made(program);
  made.add("size", wanted.size)
      .add("depth", wanted.depth)
      .add("objects", wanted.count)
      .add("bytes", bytes)
      .add("wall_s", wall)
      .add("cpu_s", cpu)
      .add("objects_per_s", count / wall)
      .add("mb_per_s", static_cast<double>(bytes) / wall / 1e6)
      .add("cpu_us_per_object", cpu / count * 1e6);
  return made;
}

}  // namespace bench
