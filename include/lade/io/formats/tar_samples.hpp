// Samples in tar archives that are reached by index: exact shuffles of all shards, equal steps over
// ranks, and states behind every stage.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/io/formats/shards.hpp>
#include <lade/io/formats/tar_index.hpp>
#include <lade/io/formats/webdataset.hpp>
#include <lade/sample.hpp>
#include <lade/task.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lade {

namespace detail {
class indexed_shards;
class tar_sample_reader;
}  // namespace detail

namespace io {

struct tar_samples_options {
  // Where the indexes of archives are kept: beside them if empty, otherwise in this directory. It
  // is created (mode 0755 less the umask) if its parent exists; from a URL, indexes are only read.
  // An index holds for the name that was indexed: for a path by its time of modification, for a URL
  // by its entity tag. So the index of a local copy is not used for the URL of the archive.
  std::string_view index_directory = {};

  unsigned concurrency = 16;  // archives that are indexed at a time; at least 1

  // Which fields the samples have. Of the options of tar, those about damage hold for indexing.
  read_tar_options read = {};
};

// The samples of shards as a listing without data, in the order of the shards:
//
//   lade::io::shards shards("train-{00..99}.tar");
//   auto samples = lade::sync_wait(runtime, lade::io::index_shards(shards));
//   lade::from(samples) | lade::shuffle({.seed = 7})
//       | lade::shard(lade::rank_from_environment())
//       | lade::map(samples.read(), {.concurrency = 64})
//
// Keys and fields are those of io::read_tar. A small value: copies share the index.
class tar_samples {
 public:
  std::size_t size() const noexcept;

  async_generator<sample> list() const;
  std::vector<sample> list_all() const;

  // Its key without the directories that all shards have in common, and without signatures. Throws
  // error(invalid_argument) for a sample that is not listed.
  std::string identity_of(const sample& listed) const;

  // The function that reads a listed sample: the ranges of its fields, as one range where they are
  // close together. Any thread. Keeps up to 64 archives open. Throws error(invalid_argument) for a
  // sample that is not listed, and error(invalid_data) for an archive whose size is not that of its
  // index.
  detail::tar_sample_reader read() const;

 private:
  friend task<tar_samples> index_shards(shards which, const tar_samples_options& options);

  static task<tar_samples> make(std::shared_ptr<detail::indexed_shards> shards,
                                std::string directory, unsigned concurrency, tar_options options);

  explicit tar_samples(std::shared_ptr<detail::indexed_shards> shards) noexcept
      : shards_(std::move(shards)) {}

  std::shared_ptr<detail::indexed_shards> shards_;
};

// Indexes shards, or loads their indexes (see load_or_index_tar): of files the size and the time of
// modification decide whether an index is up to date, of objects the size and the strong entity
// tag. The index of an object without one is not kept. A shard that is another when a sample is
// read is an error, as far as that can be told. Throws what index_tar throws, error(invalid_data)
// for a shard with two samples of one key, and error with the system's reason for an
// index_directory that is none and cannot be created.
task<tar_samples> index_shards(shards which, const tar_samples_options& options = {});

}  // namespace io

// What tar_samples::read returns.
class detail::tar_sample_reader {
 public:
  static constexpr unsigned default_concurrency = 64;

  explicit tar_sample_reader(std::shared_ptr<indexed_shards> shards) noexcept
      : shards_(std::move(shards)) {}

  task<sample> operator()(sample listed) const;

 private:
  std::shared_ptr<indexed_shards> shards_;
};

}  // namespace lade
