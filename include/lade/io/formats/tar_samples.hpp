// Samples in tar archives with random access: exact shuffles over all shards, equal steps over
// ranks, and checkpoints after every stage.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/io/formats/shards.hpp>
#include <lade/io/formats/tar_index.hpp>
#include <lade/io/formats/webdataset.hpp>
#include <lade/sample.hpp>
#include <lade/task.hpp>

#include <cstdint>
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
  // The directory of the indexes; if empty, they are beside the archives. It is created (mode 0755
  // less the umask) if its parent exists. Behind a URL, indexes are only read. An index is valid
  // for the indexed name: for a path by its time of modification, for a URL by its entity tag. So
  // the index of a local copy is not used for the URL of the archive.
  std::string_view index_directory = {};

  unsigned concurrency = 16;  // archives that are indexed in parallel; at least 1

  // The fields of the samples. The options of `tar` that concern damage apply to indexing.
  read_tar_options read = {};
};

// The samples of shards, without data, in the order of the shards:
//
//   lade::io::shards shards("train-{00..99}.tar");
//   auto samples = lade::sync_wait(runtime, lade::io::index_shards(shards));
//   lade::from(samples) | lade::shuffle({.seed = 7})
//       | lade::shard(lade::rank_from_environment())
//       | lade::map(samples.read(), {.concurrency = 64})
//
// Keys and fields are those of io::read_tar. The samples are reached by index, so the number of
// steps is known before a run. A small value: copies share the index.
class tar_samples {
 public:
  // As an index source (see from.hpp): the number of samples; sample `i`, or
  // error(invalid_argument) if there are not so many; and the identity of all, which checkpoints
  // compare. It depends on the names of all samples, as identity_of returns them, and on their
  // order.
  std::uint64_t size() const noexcept;
  sample at(std::uint64_t i) const;
  std::string identity() const;

  async_generator<sample> list() const;
  std::vector<sample> list_all() const;

  // Returns the identity of a sample, which does not depend on where the shards are: its key
  // without the common directories of all shards, and without signatures. Throws
  // error(invalid_argument) for a sample that is not listed.
  std::string identity_of(const sample& listed) const;

  // Returns a function that reads a listed sample: the ranges of its fields, merged where they are
  // close together. Any thread may call it. Keeps up to 64 archives open. The function throws
  // error(invalid_argument) for a sample that is not listed. It throws error(invalid_data) if the
  // size or the identity of an archive differs from its index.
  detail::tar_sample_reader read() const;

 private:
  friend task<tar_samples> index_shards(shards which, const tar_samples_options& options);

  static task<tar_samples> make(std::shared_ptr<detail::indexed_shards> shards,
                                std::string directory, unsigned concurrency, tar_options options);

  explicit tar_samples(std::shared_ptr<detail::indexed_shards> shards) noexcept
      : shards_(std::move(shards)) {}

  std::shared_ptr<detail::indexed_shards> shards_;
};

// Indexes shards, or loads their indexes (see load_or_index_tar). The index of a file is up to date
// if size and time of modification are equal; that of an object, if size and strong entity tag are.
// The index of an object without such a tag is not saved.
//
// A shard that is replaced before one of its samples is read is an error, as far as it can be
// detected. Throws as index_tar does. Throws error(invalid_data) for a shard with two samples of
// one key. Throws error with the system's reason if index_directory is not a directory and cannot
// be created.
task<tar_samples> index_shards(shards which, const tar_samples_options& options = {});

}  // namespace io

// The function that tar_samples::read returns.
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
