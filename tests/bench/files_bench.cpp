// lade's reading of many small files, beside files_bare, which is the limit.

#include <lade/buffer_pool.hpp>
#include <lade/detail/operation.hpp>
#include <lade/io/file.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/this_context.hpp>

#include <atomic>
#include <deque>

#include "bench.hpp"

namespace {

struct job {
  std::vector<lade::sample> samples;
  lade::detail::read read;
  std::atomic<std::size_t> next = 0;
  std::atomic<std::size_t> total = 0;
};

// One of those in flight.
lade::task<> read_files(job& work) {
  std::size_t sum = 0;
  for (auto i = work.next++; i < work.samples.size(); i = work.next++) {
    auto got = co_await work.read(work.samples[i]);
    sum += got.data().size();
  }
  work.total += sum;
}

// Runs on a reactor, as a stage's tasks do.
lade::task<> read_on(const lade::context& reactor, job& work) {
  co_await lade::detail::under(reactor, read_files(work));
}

lade::task<> read_all(lade::runtime& runtime, job& work, std::size_t in_flight) {
  std::deque<lade::context> reactors;
  lade::scope children(co_await lade::this_context());
  for (std::size_t i = 0; i < in_flight; ++i) {
    auto& on_reactor = reactors.emplace_back(co_await lade::this_context());
    on_reactor.home = &runtime.reactor(i);
    children.start(read_on(on_reactor, work));
  }
  co_await children.join();
}

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "lade's reading of many small files.");
  auto directory = options.text("dir", "build/files", "the files, all of one size");
  auto kind = options.choice("reactor", "automatic|io_uring|fallback", "what reads them");
  auto in_flight = options.number("parallel", 64, "files in flight");
  auto reactors = options.number("reactors", 1, "reactor threads");
  auto count = options.number("count", 0, "how many files are read; 0: all");
  auto direct = options.flag("direct", "past the page cache");
  auto passes = options.number("passes", 1, "how often all are read");
  bool cold = options.flag("drop-caches", "empty the page cache first");
  options.done();

  auto paths = bench::list_files(directory);
  if (count > 0) paths.resize(std::min(paths.size(), count));
  auto bytes = std::filesystem::file_size(paths.front());
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
  lade::sync_wait(runtime, read_all(runtime, work, in_flight));
  double wall = clock.wall_s(), cpu = clock.cpu_s();
  if (work.total != bytes * work.samples.size())
    bench::fail(directory + ": not all bytes were read");
  auto files = static_cast<double>(work.samples.size());
  bench::report("files_bench")
      .add("reactor", kind)
      .add("reactors", reactors)
      .add("parallel", in_flight)
      .add("direct", std::size_t{direct})
      .add("cold", std::size_t{cold})
      .add("files", work.samples.size())
      .add("bytes", bytes)
      .add("wall_s", wall)
      .add("cpu_s", cpu)
      .add("files_per_s", files / wall)
      .add("cpu_s_per_10k", cpu / files * 1e4)
      .print();
}
