// lade's reading of many small files, beside files_bare, which is the limit.

#include <lade/buffer_pool.hpp>
#include <lade/detail/operation.hpp>
#include <lade/io/file.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/this_context.hpp>

#include "bench.hpp"

namespace {

struct job {
  std::vector<lade::sample> samples;
  std::size_t next = 0;
  std::size_t total = 0;
};

// One of those in flight. All run on the reactor's thread.
lade::task<> read_files(job& work) {
  while (work.next < work.samples.size()) {
    auto got = co_await lade::io::read(work.samples[work.next++]);
    work.total += got.data().size();
  }
}

// Runs on the reactor from its first await on, and so do the children.
lade::task<> read_all(job& work, std::size_t in_flight) {
  co_await lade::detail::sleep_until(lade::detail::clock::now());
  lade::scope children(co_await lade::this_context());
  for (std::size_t i = 0; i < in_flight; ++i) children.start(read_files(work));
  co_await children.join();
}

lade::task<> read_on_reactor(lade::runtime& runtime, job& work, std::size_t in_flight) {
  lade::buffer_pool memory;
  lade::context on_reactor = co_await lade::this_context();
  on_reactor.home = &runtime.reactor();
  on_reactor.memory = &memory;
  co_await lade::detail::under(on_reactor, read_all(work, in_flight));
}

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "lade's reading of many small files.");
  auto directory = options.text("dir", "build/files", "the files, all of one size");
  auto kind = options.choice("reactor", "automatic|io_uring|fallback", "what reads them");
  auto in_flight = options.number("parallel", 64, "files in flight");
  auto count = options.number("count", 0, "how many files are read; 0: all");
  bool cold = options.flag("drop-caches", "empty the page cache first");
  options.done();

  auto paths = bench::list_files(directory);
  if (count > 0) paths.resize(std::min(paths.size(), count));
  auto bytes = std::filesystem::file_size(paths.front());
  job work;
  for (auto& path : paths) work.samples.emplace_back(path);
  if (cold) bench::drop_caches(paths);
  using lade::reactor_kind;
  lade::runtime runtime({.threads = 1,
                         .reactor = kind == "io_uring"   ? reactor_kind::io_uring
                                    : kind == "fallback" ? reactor_kind::fallback
                                                         : reactor_kind::automatic});
  bench::stopwatch clock;
  lade::sync_wait(runtime, read_on_reactor(runtime, work, in_flight));
  double wall = clock.wall_s(), cpu = clock.cpu_s();
  if (work.total != bytes * paths.size()) bench::fail(directory + ": not all bytes were read");
  auto files = static_cast<double>(paths.size());
  bench::report("files_bench")
      .add("reactor", kind)
      .add("parallel", in_flight)
      .add("cold", std::size_t{cold})
      .add("files", paths.size())
      .add("bytes", bytes)
      .add("wall_s", wall)
      .add("cpu_s", cpu)
      .add("files_per_s", files / wall)
      .add("cpu_s_per_10k", cpu / files * 1e4)
      .print();
}
