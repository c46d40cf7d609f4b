// A source that streams the samples of shards. Its checkpoints are exact behind every stage.

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
  bool shuffle = false;    // whether each epoch has another order of shards
  std::uint64_t seed = 0;  // seed of the shuffle

  // The assignment of shards to ranks: this rank reads the shards at rank, rank + world, ... of the
  // order. `remainder` is not used. Ranks have different numbers of samples.
  shard_options shard = {};

  // Number of open shards, 1 to 1,048,576. With 1, shards are read on the thread of the next stage.
  // With more, a coroutine on the CPU pool reads each shard ahead of its turn, by up to `buffer`
  // samples (at most 1,048,576; 0 counts as 1). The order of the samples is the same, and so are
  // the checkpoints.
  unsigned concurrency = 1;
  std::size_t buffer = 16;

  // The policy for damaged shards; the policy of the run if not set. Samples before the damage are
  // delivered.
  std::optional<lade::on_error> on_error = {};

  read_tar_options read = {};
};

// Returns a source of the samples of WebDataset shards, one shard after the other:
//
//   lade::io::from_shards(lade::io::shards("train-{000000..001023}.tar"),
//                         {.shuffle = true,
//                          .seed = 7,
//                          .shard = lade::rank_from_environment(),
//                          .concurrency = 4}) |
//       lade::shuffle({.seed = 8, .window = 4096}) | lade::map(decode, {.concurrency = 8}) |
//       lade::batch(256)
//
// Samples are those of io::read_tar. Unlike samples of a flat_map, each sample has a position: its
// shard and its number in the shard. So a run has a checkpoint also behind a window shuffle and
// batches.
//
// A resumed run skips the shards that were delivered completely, without opening them. It reads the
// other shards from their beginning, and they must contain the same samples. A shard that failed
// and was skipped is read again; samples beyond the delivered ones are delivered then.
//
// The checkpoints of all ranks can be merged (lade::merge), and any number of ranks can resume from
// the result. All shards that are not complete are assigned again, in the same order. The new rank
// of a partly read shard continues it. If fewer shards than ranks are left, some ranks have no
// samples.
//
// A larger concurrency hides the latency of opening a shard, for example over a network. The order
// is still one shard after the other. So it neither adds the rates of several connections nor mixes
// the shards. For both, merge sources that have different shards and read ahead:
//
//   lade::merge(std::vector{from_shards(shards("train-{000..511}.tar"), options),
//                           from_shards(shards("train-{512..999}.tar"), options)})
//
// Memory: a sample keeps its chunks of the archive alive. While the budget is exhausted, shards
// that are read ahead wait for memory. The shard whose turn it is exceeds the limit, so they cannot
// block it.
//
// Throws error(invalid_argument) for options out of range, and for fewer shards than ranks.
pipeline<sample> from_shards(shards which, const from_shards_options& options = {});

}  // namespace lade::io
