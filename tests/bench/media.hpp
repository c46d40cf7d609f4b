// What the programs share that measure video and audio: which frames of a clip are wanted, and the
// line that they print.

#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <latch>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.hpp"

namespace bench {

constexpr std::size_t clip_frames = 16;
constexpr std::size_t clip_side = 224;
constexpr std::size_t clip_bytes = clip_frames * clip_side * clip_side * 3;

// The middles of `count` equal parts of a video.
inline std::vector<std::size_t> evenly_spaced(std::size_t frames, std::size_t count = clip_frames) {
  std::vector<std::size_t> indices(count);
  for (std::size_t i = 0; i < count; ++i) indices[i] = (2 * i + 1) * frames / (2 * count);
  return indices;
}

// `count` frames in a row. Their places over clips 0, 1, 2 and so on are spread evenly, by steps of
// the golden ratio; the peers' programs compute the same.
inline std::vector<std::size_t> contiguous(std::size_t frames, std::size_t clip,
                                           std::size_t count = clip_frames) {
  std::size_t places = frames - count + 1;
  std::size_t first = (clip + 1) * (places * 618 / 1000) % places;
  std::vector<std::size_t> indices(count);
  for (std::size_t i = 0; i < count; ++i) indices[i] = first + i;
  return indices;
}

// What is wanted of clip number `clip`: `pick` is "even" or "contiguous".
inline std::vector<std::size_t> picked(std::string_view pick, std::size_t frames,
                                       std::size_t clip) {
  return pick == "even" ? evenly_spaced(frames) : contiguous(frames, clip);
}

struct seconds {
  double wall, cpu;
};

// Calls `work(i)` for each i below `items`, after one call that is not measured: memory and files
// that are used for the first time cost more.
template <class F>
seconds time_items(std::size_t items, F work) {
  work(std::size_t{0});
  stopwatch clock;
  for (std::size_t i = 0; i < items; ++i) work(i);
  return {clock.wall_s(), clock.cpu_s()};
}

// The same on several threads, which take the items in turn: calls `work(i, thread)`. Before the
// clock starts, each thread makes a call that is not measured.
template <class F>
seconds time_items(std::size_t items, std::size_t threads, F work) {
  if (threads == 0) fail("--threads wants at least 1");
  if (threads == 1) return time_items(items, [&](std::size_t i) { work(i, std::size_t{0}); });
  std::atomic<std::size_t> next = 0;
  std::latch warm(static_cast<std::ptrdiff_t>(threads)), begin(1);
  std::vector<std::jthread> workers;
  for (std::size_t thread = 0; thread < threads; ++thread)
    workers.emplace_back([&, thread] {
      work(std::size_t{0}, thread);
      warm.count_down();
      begin.wait();
      for (std::size_t i = next++; i < items; i = next++) work(i, thread);
    });
  warm.wait();
  stopwatch clock;
  begin.count_down();
  workers.clear();
  return {clock.wall_s(), clock.cpu_s()};
}

// The figures of `items` things done in that time, each of `item_frames` frames or samples.
inline report items_report(std::string_view program, std::size_t items, std::size_t item_frames,
                           seconds taken) {
  auto count = static_cast<double>(items);
  report line(program);
  line.add("items", items)
      .add("item_frames", item_frames)
      .add("wall_s", taken.wall)
      .add("cpu_s", taken.cpu)
      .add("items_per_s", count / taken.wall)
      .add("items_per_cpu_s", count / taken.cpu)
      .add("cpu_ms_per_item", taken.cpu / count * 1e3);
  return line;
}

// The content of a file.
template <class Buffer>
Buffer load(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat about;
  if (file < 0 || ::fstat(file, &about) != 0) fail(path);
  Buffer content(static_cast<std::size_t>(about.st_size));
  if (::pread(file, content.data(), content.size(), 0) != about.st_size) fail(path);
  ::close(file);
  return content;
}

// Reads a file of known length into memory that had it before.
template <class Buffer>
void load_again(const std::string& path, Buffer& into) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(path);
  const auto bytes = static_cast<ssize_t>(into.size());
  if (::pread(file, into.data(), into.size(), 0) != bytes) fail(path);
  ::close(file);
}

// Writes bytes to compare with another program's; nothing without a path.
inline void dump(const std::string& path, const void* data, std::size_t bytes) {
  if (path.empty()) return;
  std::ofstream(path, std::ios::binary)
      .write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
}

}  // namespace bench
