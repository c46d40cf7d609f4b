// A training on images in an object store, which may be killed at any time and resumes:
//
//   remote_images s3://bucket/train CHECKPOINT LOG
//
// The folders in the root are the classes. Any name that lade reads will do: s3://, gs://,
// https:// of a store that lists, or a path. Credentials and endpoint are read from the environment
// (see docs/guides/remote-data.md), and so are ranks of torchrun, Slurm or Open MPI.
//
// "Trains" by writing the contents of each batch to LOG, a line each, and saves its state to
// CHECKPOINT after every step.

#include <lade/io/directory.hpp>
#include <lade/io/file.hpp>
#include <lade/io/http/urls.hpp>
#include <lade/lade.hpp>
#include <lade/media/image.hpp>

#include <cstdio>
#include <exception>
#include <string>

#include "training_log.hpp"

static std::string line_of(const lade::sample_batch& batch) {
  std::string line;
  for (auto& each : batch.samples()) line += each.name() + ':' + std::to_string(each.label()) + ' ';
  return line;
}

static void run(const std::string& root, const std::string& checkpoint, const std::string& log) {
  training_log training(checkpoint, log);
  lade::runtime runtime;
  auto batches =
      lade::from(lade::io::labelled_files(root, "**/*.jpg")) | lade::shuffle({.seed = 7}) |
      lade::shard(lade::rank_from_environment()) | lade::map(lade::io::read, {.concurrency = 64}) |
      lade::batch_into(lade::media::decode_image({.width = 224, .height = 224}), {.size = 8});

  for (auto epoch = training.epoch(); epoch < 2; ++epoch) {
    auto steps = runtime.run(
        batches, {.epoch = epoch, .state = training.take_state(), .require_state = true});
    for (auto& batch : steps) {
      training.step(line_of(batch));
      training.save(steps.state());
    }
  }
}

int main(int count, char** arguments) {
  if (count != 4) {
    std::fprintf(stderr, "usage: remote_images ROOT CHECKPOINT LOG\n");
    return 2;
  }
  try {
    run(arguments[1], arguments[2], arguments[3]);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "remote_images: %s\n", failure.what());
    return 1;
  }
}
