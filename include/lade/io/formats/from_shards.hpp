// A source that streams the samples of shards, and whose states are exact behind every stage.

#pragma once

#include <lade/failure.hpp>
#include <lade/io/formats/shards.hpp>
#include <lade/io/formats/webdataset.hpp>
#include <lade/pipeline.hpp>
#include <lade/sample.hpp>
#include <lade/shard.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace lade::io {

struct from_shards_options {
  bool shuffle = false;    // the shards: another order in every epoch
  std::uint64_t seed = 0;  // of the shuffle

  // Which of the shards, in their order, are this rank's: those at rank, rank + world, ...
  // `remainder` is not used. Ranks get different numbers of samples.
  shard_options shard = {};

  // Shards that are open at a time: 1 to 1,048,576. With 1, shards are read on the thread of the
  // next stage. With more, each is read by a coroutine on the CPU pool, ahead of its turn by up to
  // `buffer` samples (up to 1,048,576; 0 counts as 1). The order of the samples is the same, and so
  // are the states.
  unsigned concurrency = 1;
  std::size_t buffer = 16;

  // What becomes of a shard that is damaged; its samples before the damage are kept. The run's if
  // not given.
  std::optional<lade::on_error> on_error = {};

  read_tar_options read = {};
};

// The samples of WebDataset shards, one shard after the other:
//
//   lade::io::from_shards(lade::io::shards("train-{000000..001023}.tar"),
//                         {.shuffle = true,
//                          .seed = 7,
//                          .shard = lade::rank_from_environment(),
//                          .concurrency = 4}) |
//       lade::shuffle({.seed = 8, .window = 4096}) | lade::map(decode, {.concurrency = 8}) |
//       lade::batch(256)
//
// Samples are those of io::read_tar. Unlike parts of a flat_map, each has a position: its shard and
// its number in it. So a run has a state also behind a window shuffle and batches. A resumed run
// opens no shard that was delivered completely, and reads the others from their beginning. The
// same samples have to be in a shard. A shard that failed and was skipped is read again, and what
// it has beyond the samples that were delivered is delivered then.
//
// The states of all ranks can be merged (lade::merge), and any number of ranks can resume from the
// merged state. Every shard that is not complete is assigned anew, in the same order; a shard that
// one rank has read in part is continued by the rank that has it now. If fewer shards are left than
// ranks, some ranks have no samples.
//
// A larger concurrency hides the time that it takes to open a shard, as over a network. The order
// stays that of one shard after the other, so it does not add the rates of several connections, nor
// does it mix the shards. To have both, merge sources that have different shards and read ahead:
//
//   lade::merge(std::vector{from_shards(shards("train-{000..511}.tar"), options),
//                           from_shards(shards("train-{512..999}.tar"), options)})
//
// Memory: a sample keeps the chunks alive that it lies in. Shards that are read ahead wait for
// memory while the budget is exhausted; the shard whose turn it is goes beyond the limit, so they
// cannot block it.
//
// Throws error(invalid_argument) for options that cannot work, and for fewer shards than ranks.
pipeline<sample> from_shards(shards which, const from_shards_options& options = {});

}  // namespace lade::io
