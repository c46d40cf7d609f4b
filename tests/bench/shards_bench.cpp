// Samples of tar shards behind a web server, in random order by their index.

#include <lade/from.hpp>
#include <lade/io/formats/tar_samples.hpp>
#include <lade/io/http/urls.hpp>
#include <lade/lade.hpp>

#include "bench.hpp"

int main(int argc, char** argv) {
  bench::options options(argc, argv, "lade: samples of remote tar shards, in random order.");
  auto shards = options.text("shards", "", "their URLs, with braces");
  auto depth = options.number("depth", 64, "samples at a time");
  auto passes = options.number("passes", 1, "how often all are read");
  options.done();

  lade::runtime runtime;
  bench::stopwatch indexing;
  auto samples = lade::sync_wait(runtime, lade::io::index_shards(lade::io::shards(shards)));
  auto index_s = indexing.wall_s();
  auto reads = lade::from(samples) | lade::shuffle({.seed = 7}) |
               lade::map(samples.read(), {.concurrency = static_cast<unsigned>(depth)}) |
               lade::batch(64);
  bench::stopwatch clock;
  std::size_t done = 0, bytes = 0;
  for (std::uint64_t pass = 0; pass < passes; ++pass)
    for (auto& batch : runtime.run(reads, {.epoch = pass}))
      for (auto& one : batch) {
        ++done;
        for (auto& each : one.fields()) bytes += each.bytes().size();
      }
  auto items = static_cast<double>(done);
  bench::report("shards_bench")
      .add("items", done)
      .add("item_bytes", bytes / std::max<std::size_t>(done, 1))
      .add("index_s", index_s)
      .add("wall_s", clock.wall_s())
      .add("cpu_s", clock.cpu_s())
      .add("items_per_s", items / clock.wall_s())
      .add("cpu_us_per_item", clock.cpu_s() / items * 1e6)
      .print();
}
