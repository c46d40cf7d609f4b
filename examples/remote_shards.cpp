// A training on WebDataset shards behind a web server or in an object store, cached on a local
// disk, which may be killed at any time and resumes:
//
//   remote_shards 'https://host/train-{000..127}.tar' CACHE CHECKPOINT LOG
//
// Shards are shuffled and assigned to ranks, samples shuffled within a window. The first epoch
// fetches the shards and keeps them in the directory CACHE. Later epochs read them there.
//
// "Trains" by writing the contents of each batch to LOG, a line each, and saves its state to
// CHECKPOINT after every step.

#include <lade/io/disk_cache.hpp>
#include <lade/io/formats/from_shards.hpp>
#include <lade/io/http/urls.hpp>
#include <lade/lade.hpp>
#include <lade/media/image.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "training_log.hpp"

// "https://host/": the prefix of the cached URLs.
static std::string_view root_of(std::string_view url) {
  auto host = url.find("://");
  if (host == url.npos) return url;
  return url.substr(0, url.find('/', host + 3) + 1);
}

static std::string line_of(const lade::sample_batch& batch) {
  std::string line;
  for (auto& each : batch.samples()) line += each.name() + ':' + std::to_string(each.label()) + ' ';
  return line;
}

static void run(const std::string& shards, const std::string& directory,
                const std::string& checkpoint, const std::string& log) {
  auto cache = lade::io::mount_disk_cache(root_of(shards), {.directory = directory});
  training_log training(checkpoint, log);
  lade::runtime runtime;
  auto samples =
      lade::io::from_shards(lade::io::shards(shards), {.shuffle = true,
                                                       .seed = 7,
                                                       .shard = lade::rank_from_environment(),
                                                       .concurrency = 2,
                                                       .read = {.data = "jpg", .label = "cls"}});
  auto batches =
      samples | lade::shuffle({.seed = 8, .window = 64}) |
      lade::batch_into(lade::media::decode_image({.width = 224, .height = 224}), {.size = 8});

  for (auto epoch = training.epoch(); epoch < 2; ++epoch) {
    auto steps = runtime.run(
        batches, {.epoch = epoch, .state = training.take_state(), .require_state = true});
    for (auto& batch : steps) {
      training.step(line_of(batch));
      training.save(steps.state());
    }
  }
  std::printf("cache: %s\n", to_string(cache->stats()).c_str());
}

int main(int count, char** arguments) {
  if (count != 5) {
    std::fprintf(stderr, "usage: remote_shards SHARDS CACHE CHECKPOINT LOG\n");
    return 2;
  }
  try {
    run(arguments[1], arguments[2], arguments[3], arguments[4]);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "remote_shards: %s\n", failure.what());
    return 1;
  }
}
