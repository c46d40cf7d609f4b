// Reads shards of a web server or an object store, and fetches them once.

#include <lade/io/disk_cache.hpp>
#include <lade/io/formats/from_shards.hpp>
#include <lade/io/http/urls.hpp>
#include <lade/lade.hpp>
#include <lade/media/image.hpp>

#include <cstddef>
#include <iostream>
#include <string>

int main(int count, char** arguments) {
  if (count != 4) return 2;
  const std::string place = arguments[1];
  auto cache = lade::io::mount_disk_cache(place, {.directory = arguments[3]});
  lade::runtime runtime;
  auto samples = lade::io::from_shards(
      lade::io::shards(place + arguments[2]),
      {.shuffle = true, .seed = 7, .concurrency = 2, .read = {.data = "jpg", .label = "cls"}});
  auto batches =
      samples | lade::shuffle({.seed = 8, .window = 64}) |
      lade::batch_into(lade::media::decode_image({.width = 224, .height = 224}), {.size = 8});

  for (unsigned epoch = 0; epoch < 2; ++epoch) {
    std::size_t images = 0;
    for (auto& batch : runtime.run(batches, {.epoch = epoch})) images += batch.size();
    std::cout << images << " images; " << to_string(cache->stats()) << "\n";
  }
}
