// The floor of clips_bench: a folder of videos to batches of clips, without a library around it.
// Threads take the videos in turn, and convert 16 frames of each straight into their place in one
// of two batches. The main thread is the consumer.

#include <atomic>
#include <thread>

#include "bare_clip.hpp"
#include "batch_pair.hpp"
#include "media.hpp"

namespace {

// Loads clip number `index` into its place.
struct loader {
  std::vector<std::string> paths;
  std::string pick;

  void load(std::size_t index, bench::bare_scaler& scaler, std::byte* slot) const {
    auto* out = reinterpret_cast<std::uint8_t*>(slot);
    bench::bare_clip video(paths[index % paths.size()]);
    video.decode(bench::picked(pick, video.frames(), index),
                 [&](std::size_t i, const AVFrame& frame) {
                   scaler.to_planes(frame, out + i * (bench::clip_bytes / bench::clip_frames));
                 });
  }
};

}  // namespace

int main(int argc, char** argv) {
  bench::stopwatch clock;
  bench::options options(argc, argv, "The floor: videos to batches of [16, 3, 224, 224] bytes.");
  auto directory = options.text("dir", "build/media/clips", "the videos");
  auto pick = options.choice("pick", "even|contiguous", "which frames of a video a clip has");
  auto threads = options.number("threads", 2, "that decode");
  auto clips = options.number("items", 0, "how many clips; 0: of each file one");
  auto batch = options.number("batch", 8, "clips to a batch");
  auto dump = options.text("dump", "", "file to write the first batch to");
  options.done();

  loader source{bench::list_files(directory), pick};
  if (clips == 0) clips = source.paths.size();
  bench::batch_pair batches(clips, batch, bench::clip_bytes);
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> workers;
  for (std::size_t i = 0; i < threads; ++i)
    workers.emplace_back([&] {
      bench::bare_scaler scaler;
      for (std::size_t k = next++; k < clips; k = next++) {
        source.load(k, scaler, batches.slot(k));
        batches.filled(k);
      }
    });

  double first_batch_s = 0;
  for (std::size_t b = 0; b < batches.batches(); ++b) {
    const std::byte* pixels = batches.wait(b);
    if (b == 0) first_batch_s = clock.wall_s();
    if (b == 0) bench::dump(dump, pixels, std::min(batch, clips) * bench::clip_bytes);
    batches.release(b);
  }
  workers.clear();
  bench::items_report("clips_bare", clips, bench::clip_frames, {clock.wall_s(), clock.cpu_s()})
      .add("threads", threads)
      .add("first_batch_ms", first_batch_s * 1e3)
      .add("peak_rss_mib", bench::peak_rss_mib())
      .print();
}
