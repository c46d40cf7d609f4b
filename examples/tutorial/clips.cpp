// Turns a folder of videos into batches of short clips.

#include <lade/io/directory.hpp>
#include <lade/io/file.hpp>
#include <lade/lade.hpp>
#include <lade/media/av/clip.hpp>

#include <iostream>

int main(int count, char** arguments) {
  if (count != 2) return 2;
  lade::runtime runtime;
  lade::media::decode_clip clip({.sampling = {.frames = 8, .fps = 4},
                                 .width = 112,
                                 .height = 112,
                                 .fit = lade::media::image_fit::random_crop});
  auto batches = lade::from(lade::io::labelled_files(arguments[1], "**/*.{mp4,mkv,webm}")) |
                 lade::shuffle({.seed = 7}) | lade::map(lade::io::read, {.concurrency = 8}) |
                 lade::batch_into(clip, {.size = 2});
  for (auto& batch : runtime.run(batches))
    std::cout << batch.size() << " clips: u8 " << to_string(batch.tensor().shape()) << "\n";
}
