// Random crops of photos with labels, in another order in every epoch.

#include <lade/io/directory.hpp>
#include <lade/io/file.hpp>
#include <lade/lade.hpp>
#include <lade/media/image.hpp>

#include "strip.hpp"

#include <cstdint>
#include <iostream>

int main(int count, char** arguments) {
  if (count != 3) return 2;
  lade::runtime runtime;
  auto photos = lade::io::labelled_files(arguments[1], "**/*.jpg").list_all();
  lade::media::decode_image crop(
      {.width = 112, .height = 112, .fit = lade::media::image_fit::random_crop});
  auto batches = lade::from(photos) | lade::shuffle({.seed = 7}) | lade::map(lade::io::read) |
                 lade::batch_into(crop, {.size = 8});

  for (auto& epoch : lade::epochs(runtime, batches, 2, {.on_error = lade::on_error::skip})) {
    for (std::uint64_t step = 1; auto& batch : epoch) {
      std::cout << "epoch " << epoch.epoch() << ", batch " << step << " of "
                << batches.size().value() << ", labels";
      for (auto& sample : batch.samples()) std::cout << " " << sample.label();
      std::cout << "\n";
      if (step++ == 1) save_strip(batch.tensor(), arguments[2]);
    }
    for (auto& failure : epoch.failures()) std::cout << "left out: " << failure.what << "\n";
  }
}
