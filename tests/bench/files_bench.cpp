// lade's reading of many small files, beside files_bare, which is the limit.

#include <lade/buffer_pool.hpp>
#include <lade/detail/operation.hpp>
#include <lade/io/file.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/this_context.hpp>

#include <atomic>

#include "bench.hpp"

namespace {

struct job {
  std::vector<lade::sample> samples;
  lade::detail::read read;
  std::atomic<std::size_t> next = 0;
  std::atomic<std::size_t> total = 0;
};

// Reads files on the reactor of `here`, until there are no more or another has become that of the
// number.
lade::task<> read_files(const lade::context& here, std::size_t number, job& work) {
  std::size_t sum = 0;
  while (here.home == &here.runtime->reactor(number)) {
    auto i = work.next++;
    if (i >= work.samples.size()) break;
    auto got = co_await work.read(work.samples[i]);
    sum += got.data().size();
  }
  work.total += sum;
}

// One of those in flight: runs on a reactor, as a stage's tasks do.
lade::task<> read_on_reactors(std::size_t number, job& work) {
  auto here = co_await lade::this_context();
  while (work.next < work.samples.size()) {
    here.home = &here.runtime->reactor(number);
    co_await lade::detail::under(here, read_files(here, number, work));
  }
}

lade::task<> read_all(job& work, std::size_t in_flight) {
  lade::scope children(co_await lade::this_context());
  for (std::size_t i = 0; i < in_flight; ++i) children.start(read_on_reactors(i, work));
  co_await children.join();
}

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "lade's reading of many small files.");
  auto directory = options.text("dir", "build/files", "the files, all of one size");
  auto kind = options.choice("reactor", "automatic|io_uring|fallback", "what reads them");
  auto in_flight = options.number("parallel", 64, "files in flight");
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
  job work;
  if (direct) work.read = lade::io::read.with({.page_cache = page_cache::bypass});
  for (std::size_t pass = 0; pass < passes; ++pass)
    for (auto& path : paths) work.samples.emplace_back(path);
  if (cold) bench::drop_caches(paths);
  using lade::reactor_kind;
  lade::runtime runtime({.threads = 1,
                         .reactor = kind == "io_uring"   ? reactor_kind::io_uring
                                    : kind == "fallback" ? reactor_kind::fallback
                                                         : reactor_kind::automatic,
                         .reactors = static_cast<unsigned>(reactors)});
  bench::stopwatch clock;
  lade::sync_wait(runtime, read_all(work, in_flight));
  double wall = clock.wall_s(), cpu = clock.cpu_s();
  if (work.total != bytes * passes) bench::fail(directory + ": not all bytes were read");
  auto files = static_cast<double>(work.samples.size());
  bench::report("files_bench")
      .add("reactor", kind)
      .add("reactors", reactors)
      .add("runtime", runtime.describe())
      .add("parallel", in_flight)
      .add("direct", std::size_t{direct})
      .add("cold", std::size_t{cold})
      .add("files", work.samples.size())
      .add("bytes", bytes / paths.size())
      .add("wall_s", wall)
      .add("cpu_s", cpu)
      .add("files_per_s", files / wall)
      .add("cpu_s_per_10k", cpu / files * 1e4)
      .print();
}
