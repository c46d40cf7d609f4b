// How long it takes to leave a run whose reads are in flight. The gate is a median of 100 ms.

#include <lade/io/file.hpp>
#include <lade/lade.hpp>

#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "bench.hpp"

namespace {

// Sparse files: once they have been read, the page cache holds them like any others.
std::vector<std::string> make_files(const std::string& directory, std::size_t files,
                                    std::size_t bytes) {
  std::filesystem::create_directories(directory);
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < files; ++i) {
    paths.push_back(directory + "/" + std::to_string(i));
    if (!std::filesystem::exists(paths.back())) std::fclose(std::fopen(paths.back().c_str(), "w"));
    std::filesystem::resize_file(paths.back(), bytes);
  }
  return paths;
}

// The shared libraries of a directory, the largest first.
std::vector<std::string> shared_libraries(const std::string& directory, std::size_t files) {
  auto paths = bench::list_files(directory);
  std::erase_if(paths, [](auto& path) { return path.find(".so") == std::string::npos; });
  std::ranges::sort(paths, std::greater(), [](auto& p) { return std::filesystem::file_size(p); });
  paths.resize(std::min(paths.size(), files));
  return paths;
}

void read_once(const std::vector<std::string>& paths) {
  std::vector<char> memory(std::size_t{1} << 20);
  for (auto& path : paths) {
    auto* file = std::fopen(path.c_str(), "rb");
    while (std::fread(memory.data(), 1, memory.size(), file) > 0) {}
    std::fclose(file);
  }
}

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "How long it takes to leave a run that reads large files.");
  auto what = options.choice("what", "large|libraries", "sparse files, or shared libraries");
  auto kind = options.choice("reactor", "automatic|io_uring|fallback", "what reads them");
  auto directory = options.text("dir", what == "large" ? "build/files-large" : "/usr/lib",
                                "where they are; sparse files are made");
  auto files = options.number("files", what == "large" ? 8 : 64, "how many are read at a time");
  auto bytes = options.number("bytes", std::size_t{512} << 20, "the size of a sparse file");
  auto rounds = options.number("rounds", 20, "how often a run is left");
  auto cold = options.flag("drop-caches", "empty the page cache first");
  options.done();

  auto paths =
      what == "large" ? make_files(directory, files, bytes) : shared_libraries(directory, files);
  if (cold)
    bench::drop_caches(paths);
  else
    read_once(paths);
  std::vector<lade::sample> samples;
  for (int pass = 0; pass < 100; ++pass)
    for (auto& path : paths) samples.emplace_back(path);
  using lade::reactor_kind;
  lade::runtime runtime({.reactor = kind == "io_uring"   ? reactor_kind::io_uring
                                    : kind == "fallback" ? reactor_kind::fallback
                                                         : reactor_kind::automatic});
  auto reads = lade::from(samples) | lade::map(lade::io::read, {.concurrency = unsigned(files)});
  bench::random_stream random(1);
  std::vector<double> milliseconds;
  for (std::size_t i = 0; i < rounds; ++i) {
    auto run = std::make_unique<lade::run<lade::sample>>(runtime, reads, lade::run_options{});
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(random.between(5, 50)));
    bench::stopwatch clock;
    run.reset();
    milliseconds.push_back(clock.wall_s() * 1e3);
  }
  bench::report("stop_bench")
      .add("reactor", runtime.describe())
      .add("what", what)
      .add("cold", std::size_t{cold})
      .add("files", paths.size())
      .add("p50_ms", bench::median(milliseconds))
      .add("max_ms", bench::quantile(milliseconds, 1))
      .print();
}
