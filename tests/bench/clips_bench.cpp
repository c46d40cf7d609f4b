// lade doing what clips_bare does, with the same options: a folder of videos to batches of clips.

#include <lade/io/file.hpp>
#include <lade/lade.hpp>
#include <lade/media/av/clip.hpp>

#include "media.hpp"

int main(int argc, char** argv) {
  bench::stopwatch clock;
  bench::options options(argc, argv, "lade: videos to batches of [16, 3, 224, 224] bytes.");
  auto directory = options.text("dir", "build/media/clips", "the videos");
  auto pick = options.choice("pick", "even|contiguous", "which frames of a video a clip has");
  auto threads = options.number("threads", 2, "of the CPU pool");
  auto clips = options.number("items", 0, "how many clips; 0: of each file one");
  auto batch = options.number("batch", 8, "clips to a batch");
  auto dump = options.text("dump", "", "file to write the first batch to");
  options.done();

  auto paths = bench::list_files(directory);
  if (clips == 0) clips = paths.size();
  std::vector<lade::sample> samples;
  for (std::size_t i = 0; i < clips; ++i) samples.emplace_back(paths[i % paths.size()]);
  using enum lade::media::clip_position;
  lade::media::decode_clip decode(
      {.sampling = {.frames = bench::clip_frames, .position = pick == "even" ? spread : centre},
       .width = bench::clip_side,
       .height = bench::clip_side,
       .layout = lade::media::clip_layout::tchw});
  auto batches = lade::from(std::move(samples)) | lade::map(lade::io::read) |
                 lade::batch_into(decode, {.size = batch});

  double first_batch_s = 0;
  {
    lade::runtime runtime({.threads = static_cast<unsigned>(threads)});
    for (auto& one : runtime.run(batches)) {
      if (first_batch_s > 0) continue;
      first_batch_s = clock.wall_s();
      bench::dump(dump, one.tensor().bytes(), one.tensor().spec().bytes());
    }
  }
  bench::items_report("clips_bench", clips, bench::clip_frames, {clock.wall_s(), clock.cpu_s()})
      .add("threads", threads)
      .add("first_batch_ms", first_batch_s * 1e3)
      .add("peak_rss_mib", bench::peak_rss_mib())
      .print();
}
