// Three clips of each video, at equal distances, as an evaluation takes them.

#include <lade/io/directory.hpp>
#include <lade/io/file.hpp>
#include <lade/lade.hpp>
#include <lade/media/av/clip.hpp>
#include <lade/media/av/video.hpp>

#include "strip.hpp"

#include <iostream>
#include <utility>

static lade::sample count_frames(lade::sample file) {
  lade::media::video video(file.data(), file.name());
  return std::move(file).with_label(video.size());
}

int main(int count, char** arguments) {
  if (count != 3) return 2;
  lade::runtime runtime;
  lade::media::decode_clip clips(
      {.sampling = {.frames = 4, .clips = 3, .position = lade::media::clip_position::spaced},
       .width = 112,
       .height = 112,
       .fit = lade::media::image_fit::centre_crop});
  auto batches = lade::from(lade::io::files(arguments[1], "**/*.{mp4,mkv,webm}")) |
                 lade::map(lade::io::read, {.concurrency = 8}) | lade::map(count_frames) |
                 lade::batch_into(clips, {.size = 2});
  for (auto& batch : runtime.run(batches)) {
    std::cout << batch.size() << " videos: u8 " << to_string(batch.tensor().shape()) << "\n";
    for (auto& sample : batch.samples())
      std::cout << "  " << sample.name() << ": " << sample.label() << " frames\n";
    save_strip(batch.tensor()[0][1], arguments[2]);
  }
}
