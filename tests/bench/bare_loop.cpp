// The limit: files to batches as a good engineer writes it in a day for exactly this task, without
// the engine of a library around it. Threads take the images in turn; each opens, reads and decodes
// its image and resizes it straight into the image's place in one of two batches. The main thread
// is the consumer. The decoder is libjpeg-turbo or lade's own.

#include <fstream>
#include <thread>

#include "bare_images.hpp"
#include "bare_quick.hpp"
#include "bare_turbo.hpp"
#include "batch_pair.hpp"

int main(int argc, char** argv) {
  bench::stopwatch clock;
  bench::options options(argc, argv, "The limit: a bare loop from image files to batches.");
  auto directory = options.text("dir", "build/corpus", "the images");
  auto what = options.choice("transform", "val|train|resize|decode",
                             "shorter side 256 and centre crop, random resized crop and flip, "
                             "whole image to 224x224, or only libjpeg-turbo's decode to RGB");
  auto quality = options.choice("quality", "exact|fast", "resize RGB, or the planes");
  auto layout = options.choice("layout", "hwc_u8|chw_f32", "of the batch; floats are normalised");
  auto decoder = options.choice("decoder", "libjpeg-turbo|lade",
                                "of JPEGs; lade's decodes two at once in each thread");
  auto threads = options.number("threads", 1, "that decode");
  bench::image_settings with;
  with.images = options.number("images", 0, "how many; 0: each file once");
  with.batch = options.number("batch", 256, "images to a batch");
  with.seed = options.number("seed", 1, "of the random crops");
  auto dump = options.text("dump", "", "file to write the first batch to");
  options.done();
  with.what = what == "val"      ? bench::transform::val
              : what == "train"  ? bench::transform::train
              : what == "resize" ? bench::transform::resize
                                 : bench::transform::decode;
  with.fast = quality == "fast";
  with.as_float = layout == "chw_f32";

  auto paths = bench::list_files(directory);
  if (with.images == 0) with.images = paths.size();
  bench::batch_pair batches(with.images, with.batch, with.image_bytes());
  bench::image_queue queue{.paths = paths, .images = with.images};
  std::vector<std::jthread> workers;
  for (std::size_t i = 0; i < threads; ++i)
    workers.emplace_back([&] {
      if (decoder == "lade")
        bench::quick_worker(with).work(queue, batches);
      else
        bench::turbo_worker(with).work(queue, batches);
    });

  double first_batch_s = 0;
  for (std::size_t b = 0; b < batches.batches(); ++b) {
    const std::byte* batch = batches.wait(b);
    if (b == 0) first_batch_s = clock.wall_s();
    if (b == 0 && !dump.empty())
      std::ofstream(dump, std::ios::binary)
          .write(
              reinterpret_cast<const char*>(batch),
              static_cast<std::streamsize>(std::min(with.batch, with.images) * with.image_bytes()));
    batches.release(b);
  }
  workers.clear();

  double wall = clock.wall_s(), cpu = clock.cpu_s();
  auto images = static_cast<double>(with.images);
  bench::report("bare_loop")
      .add("transform", what)
      .add("quality", quality)
      .add("layout", layout)
      .add("decoder", decoder)
      .add("simd", bench::instruction_set)
      .add("threads", threads)
      .add("images", with.images)
      .add("wall_s", wall)
      .add("cpu_s", cpu)
      .add("images_per_s", images / wall)
      .add("images_per_cpu_s", images / cpu)
      .add("first_batch_ms", first_batch_s * 1e3)
      .add("peak_rss_mib", bench::peak_rss_mib())
      .print();
}
