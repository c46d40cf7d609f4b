// clang-format off: laid out as in the README, whose program this is.
#include <lade/lade.hpp>
#include <lade/io/directory.hpp>
#include <lade/io/file.hpp>
#include <lade/media/image.hpp>

static void train(const lade::tensor&) {}

int main() {
  lade::runtime runtime;                                           // a reactor, a worker per CPU

  auto batches = lade::from(lade::io::files("train", "**/*.jpg"))
               | lade::shuffle({.seed = 7})
               | lade::shard(lade::rank_from_environment())        // torchrun, Slurm, Open MPI
               | lade::map(lade::io::read, {.concurrency = 64})    // async: awaits the reactor
               | lade::batch_into(lade::media::decode_image({.width = 224, .height = 224}),
                                  {.size = 256});

  for (unsigned epoch = 0; epoch < 90; ++epoch)
    for (auto& batch : runtime.run(batches, {.epoch = epoch}))     // a loop in an ordinary thread
      train(batch.tensor());
}
