// A pipeline that reads many small files, beside files_bare, which is the limit.

#include <lade/batch.hpp>
#include <lade/from.hpp>
#include <lade/io/file.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>

#include <filesystem>
#include "bench.hpp"

int main(int argc, char** argv) {
  bench::options options(argc, argv, "A pipeline that reads many small files.");
  auto directory = options.text("dir", "build/files", "the files, all of one size");
  auto kind = options.choice("reactor", "automatic|io_uring|fallback", "what reads them");
  auto in_flight =
      options.number("parallel", 0, "files in flight; 0: as many as map has by default");
  auto reactors = options.number("reactors", 0, "reactor threads; 0: as many as needed");
  auto count = options.number("count", 0, "how many files are read; 0: all");
  auto direct = options.flag("direct", "past the page cache");
  auto passes = options.number("passes", 1, "how often all are read");
  bool cold = options.flag("drop-caches", "empty the page cache first");
  options.done();

  auto paths = bench::list_files(directory);
  if (count > 0) paths.resize(std::min(paths.size(), count));
  std::size_t bytes = 0;
  for (auto& path : paths) bytes += std::filesystem::file_size(path);
  using lade::io::page_cache;
  auto read = direct ? lade::io::read.with({.page_cache = page_cache::bypass}) : lade::io::read;
  std::vector<lade::sample> samples;
  for (std::size_t pass = 0; pass < passes; ++pass)
    for (auto& path : paths) samples.emplace_back(path);
  auto files = static_cast<double>(samples.size());
  if (cold) bench::drop_caches(paths);
  using lade::reactor_kind;
  lade::runtime runtime({.reactor = kind == "io_uring"   ? reactor_kind::io_uring
                                    : kind == "fallback" ? reactor_kind::fallback
                                                         : reactor_kind::automatic,
                         .reactors = static_cast<unsigned>(reactors)});
  bench::stopwatch clock;
  std::size_t total = 0;
  auto batches = lade::from(std::move(samples)) |
                 lade::map(read, {.concurrency = static_cast<unsigned>(in_flight)}) |
                 lade::batch(64);
  for (auto& batch : runtime.run(batches))
    for (auto& file : batch) total += file.data().size();
  double wall = clock.wall_s(), cpu = clock.cpu_s();
  if (total != bytes * passes) bench::fail(directory + ": not all bytes were read");
  bench::report("files_bench")
      .add("reactor", kind)
      .add("reactors", reactors)
      .add("runtime", runtime.describe())
      .add("parallel", in_flight)
      .add("direct", std::size_t{direct})
      .add("cold", std::size_t{cold})
      .add("files", paths.size() * passes)
      .add("bytes", bytes / paths.size())
      .add("wall_s", wall)
      .add("cpu_s", cpu)
      .add("files_per_s", files / wall)
      .add("cpu_s_per_10k", cpu / files * 1e4)
      .print();
}
