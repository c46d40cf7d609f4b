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

// The options of lade::from_shards, and how the archives are read.
struct from_shards_options {
  bool shuffle = false;
  std::uint64_t seed = 0;
  shard_options shard = {};
  unsigned concurrency = 1;
  std::size_t buffer = 16;
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
// Samples are those of io::read_tar. Order, checkpoints, ranks and concurrency are those of
// lade::from_shards: a run has a checkpoint behind every stage, and any number of ranks can resume
// from the merged checkpoints.
//
// To add the rates of several connections, or to mix shards, merge sources of different shards:
//
//   lade::merge(std::vector{from_shards(shards("train-{000..511}.tar"), options),
//                           from_shards(shards("train-{512..999}.tar"), options)})
//
// Memory: a sample keeps its chunks of the archive alive.
//
// Errors: samples before the damage of a shard are delivered; then `on_error` decides. Throws
// error(invalid_argument) for options out of range, and for fewer shards than ranks.
pipeline<sample> from_shards(shards which, const from_shards_options& options = {});

}  // namespace lade::io
