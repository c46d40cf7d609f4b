// A source that streams the samples of shards, and whose states are exact behind every stage.

#pragma once

#include <lade/failure.hpp>
#include <lade/io/formats/shards.hpp>
#include <lade/io/formats/webdataset.hpp>
#include <lade/pipeline.hpp>
#include <lade/sample.hpp>
#include <lade/shard.hpp>

#include <cstdint>
#include <optional>

namespace lade::io {

struct from_shards_options {
  bool shuffle = false;    // the shards: another order in every epoch
  std::uint64_t seed = 0;  // of the shuffle

  // Which of the shards, in their order, are this rank's: those at rank, rank + world, ...
  // `remainder` is not used. Ranks get different numbers of samples.
  shard_options shard = {};

  // What becomes of a shard that is damaged; its samples before the damage are kept. The run's if
  // not given.
  std::optional<lade::on_error> on_error = {};

  read_tar_options read = {};
};

// The samples of WebDataset shards, one shard after the other:
//
//   lade::io::from_shards(lade::io::shards("train-{000000..001023}.tar"),
//                         {.shuffle = true, .seed = 7, .shard = lade::rank_from_environment()}) |
//       lade::shuffle({.seed = 8, .window = 4096}) | lade::map(decode, {.concurrency = 8}) |
//       lade::batch(256)
//
// Samples are those of io::read_tar. Unlike parts of a flat_map, each has a position of its own:
// its shard and its number in it. So a run has a state also behind a window shuffle and batches. A
// resumed run opens no shard that had been delivered completely, and reads the others from their
// beginning. It goes on on the same rank of the same number of ranks: states of ranks cannot be
// merged. The same samples have to be in a shard.
//
// One shard is read at a time, on the thread of the next stage. To read several side by side, merge
// sources that each have a part of the shards:
//
//   lade::merge(std::vector{from_shards(all, {.shard = {.rank = 0, .world = 2}}),
//                           from_shards(all, {.shard = {.rank = 1, .world = 2}})})
//
// Throws error(invalid_argument) for options that cannot work, and for fewer shards than ranks.
pipeline<sample> from_shards(shards which, const from_shards_options& options = {});

}  // namespace lade::io
