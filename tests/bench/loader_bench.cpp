// lade doing what bare_loop does, with the same options: a folder of images to batches.

#include <lade/io/file.hpp>
#include <lade/lade.hpp>
#include <lade/media/image.hpp>

#include <chrono>
#include <fstream>
#include <optional>
#include <thread>

#include "bench.hpp"

namespace {

lade::media::image_options decoding(const std::string& transform, bool fast, bool as_float) {
  lade::media::image_options options{.width = 224, .height = 224, .fast = fast};
  if (transform == "val") options.fit = lade::media::image_fit::centre_crop;
  if (transform == "train") options.fit = lade::media::image_fit::random_crop;
  if (as_float) {
    options.layout = lade::media::image_layout::chw;
    options.type = lade::element_type::f32;
    options.mean = lade::media::imagenet_mean;
    options.stddev = lade::media::imagenet_stddev;
  }
  return options;
}

// The files in order, again and again until there are as many as wanted.
std::vector<lade::sample> list_samples(const std::string& directory, std::size_t images) {
  auto paths = bench::list_files(directory);
  if (images == 0) images = paths.size();
  std::vector<lade::sample> samples;
  for (std::size_t i = 0; i < images; ++i) samples.emplace_back(paths[i % paths.size()]);
  return samples;
}

void dump_batch(const lade::tensor& batch, const std::string& path) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(batch.bytes()),
             static_cast<std::streamsize>(batch.spec().bytes()));
}

}  // namespace

int main(int argc, char** argv) {
  bench::stopwatch clock;
  bench::options options(argc, argv, "lade: from image files to batches.");
  auto directory = options.text("dir", "build/corpus", "the images");
  auto transform = options.choice("transform", "val|train|resize",
                                  "shorter side 256 and centre crop, random resized crop and flip, "
                                  "or whole image to 224x224");
  auto quality = options.choice("quality", "exact|fast", "resize RGB, or the planes");
  auto layout = options.choice("layout", "hwc_u8|chw_f32", "of the batch; floats are normalised");
  auto threads = options.number("threads", 1, "of the CPU pool");
  auto images = options.number("images", 0, "how many; 0: each file once");
  auto batch = options.number("batch", 256, "images to a batch");
  auto seed = options.number("seed", 1, "of the random crops");
  auto dump = options.text("dump", "", "file to write the first batch to");
  auto budget = options.number("budget-mib", 1024, "what buffers and batches may hold");
  auto stall = options.number("stall-ms", 0, "how long the consumer looks at the first batch");
  auto trace_path = options.text("trace", "", "file to write a trace of the run to");
  bool stop = options.flag("stop", "end the run after the first batch, with all in flight");
  options.done();

  auto samples = list_samples(directory, images);
  images = samples.size();
  lade::media::decode_image decode(decoding(transform, quality == "fast", layout == "chw_f32"));
  auto batches = lade::from(std::move(samples)) | lade::map(lade::io::read) |
                 lade::batch_into(decode, {.size = batch});

  double first_batch_s = 0, stop_s = 0;
  std::size_t done = 0;
  {
    lade::runtime runtime(
        {.threads = static_cast<unsigned>(threads), .memory_bytes = budget << 20});
    std::optional<bench::stopwatch> stopping;
    {
      std::optional<lade::trace> trace;
      if (!trace_path.empty()) trace.emplace(trace_path);
      auto run = runtime.run(batches, {.seed = seed, .trace = trace ? &*trace : nullptr});
      for (auto& one : run) {
        if (done == 0) {
          first_batch_s = clock.wall_s();
          if (!dump.empty()) dump_batch(one.tensor(), dump);
          std::this_thread::sleep_for(std::chrono::milliseconds(stall));
        }
        done += one.size();
        if (stop) break;
      }
      stopping.emplace();
    }
    stop_s = stopping->wall_s();
  }
  if (done != images && !stop) bench::fail("not all images came");

  double wall = clock.wall_s(), cpu = clock.cpu_s(), peak = bench::peak_rss_mib();
  auto count = static_cast<double>(done);
  bench::report("loader_bench")
      .add("transform", transform)
      .add("quality", quality)
      .add("layout", layout)
      .add("threads", threads)
      .add("images", done)
      .add("wall_s", wall)
      .add("cpu_s", cpu)
      .add("images_per_s", count / wall)
      .add("images_per_cpu_s", count / cpu)
      .add("first_batch_ms", first_batch_s * 1e3)
      .add("stop_ms", stop_s * 1e3)
      .add("peak_rss_mib", peak)
      .add("mib_over_budget", peak - static_cast<double>(budget))
      .print();
}
