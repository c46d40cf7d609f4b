// From images to batches: those of a folder, or the same ones of a web server, with a cache or
// without.

#include <lade/io/disk_cache.hpp>
#include <lade/io/file.hpp>
#include <lade/io/http/urls.hpp>
#include <lade/lade.hpp>
#include <lade/media/image.hpp>

#include "bench.hpp"

int main(int argc, char** argv) {
  bench::options options(argc, argv, "lade: from images to batches.");
  auto directory = options.text("dir", "build/corpus", "the images");
  auto url = options.text("url", "", "where they are read from instead");
  auto cache = options.text("cache", "", "a directory that keeps them; read once before");
  auto depth = options.number("depth", 64, "reads at a time");
  auto threads = options.number("threads", 2, "of the CPU pool");
  auto images = options.number("images", 4096, "how many");
  auto transfer = options.flag("transfer", "reads only");
  options.done();

  auto paths = bench::list_files(directory);
  std::vector<lade::sample> samples;
  for (std::size_t i = 0; i < images; ++i) {
    auto& path = paths[i % paths.size()];
    samples.emplace_back(url.empty() ? path : url + path.substr(directory.size()));
  }
  lade::runtime runtime({.threads = static_cast<unsigned>(threads)});
  auto reads = lade::from(std::move(samples)) |
               lade::map(lade::io::read, {.concurrency = static_cast<unsigned>(depth)});
  if (!cache.empty()) {
    lade::io::mount_disk_cache(url, {.directory = cache});
    for (auto& batch : runtime.run(reads | lade::batch(64))) (void)batch;
  }
  const lade::run_options second{.epoch = 1};
  std::size_t done = 0;
  bench::stopwatch clock;
  if (transfer) {
    for (auto& batch : runtime.run(reads | lade::batch(64), second)) done += batch.size();
  } else {
    lade::media::image_options shape{.width = 224, .height = 224};
    auto batches = reads | lade::batch_into(lade::media::decode_image(shape), {.size = 256});
    for (auto& batch : runtime.run(batches, second)) done += batch.size();
  }
  double wall = clock.wall_s(), cpu = clock.cpu_s(), count = static_cast<double>(done);
  if (done != images) bench::fail("not all images came");
  bench::report("remote_bench")
      .add("images", done)
      .add("wall_s", wall)
      .add("cpu_s", cpu)
      .add("images_per_s", count / wall)
      .add("cpu_us_per_image", cpu / count * 1e6)
      .print();
}
