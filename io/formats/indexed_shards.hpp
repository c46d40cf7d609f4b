// Which samples are where in which archive.

#pragma once

#include <lade/byte_reader.hpp>
#include <lade/io/formats/tar_samples.hpp>

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sample_name.hpp"

namespace lade::detail {

// Which version of an archive it is: of an object its entity tag, as far as it has one, of a file
// its time of modification.
task<std::string> identity_of_archive(std::string name, std::string etag);

class indexed_shards {
 public:
  // A value in an archive.
  struct location {
    std::string field;
    std::uint64_t offset;
    std::uint64_t bytes;
  };
  struct sample_locations {
    std::string key;
    std::vector<location> fields;
  };
  struct one_shard {
    std::string name;
    std::uint64_t archive_bytes = 0;
    std::string identity = {};
    std::vector<sample_locations> groups = {};
    std::unordered_map<std::string_view, std::size_t> by_key = {};  // views of the groups' keys
  };

  indexed_shards(io::shards shards, const io::tar_samples_options& options);

  std::size_t count() const noexcept { return shards_.size(); }
  const std::string& name(std::size_t shard) const { return shards_[shard].name; }
  const io::shards& listed() const noexcept { return listed_; }
  const sample_fields& fields() const noexcept { return fields_; }

  // Throws error(invalid_data) for two samples of one key, or fields of one name.
  void add(std::size_t at, const io::tar_index& index);

  // Numbers the samples in the order of the shards. Must be called once, after all shards have been
  // added.
  void number_samples();

  std::uint64_t size() const noexcept { return ends_.empty() ? 0 : ends_.back(); }
  std::string key_at(std::uint64_t i) const;

  // The name of a sample without the common directories of all shards.
  std::string identity_of(const one_shard& from, const sample_locations& sample) const;

  std::string key_of(const one_shard& from, const sample_locations& sample) const;
  const std::vector<one_shard>& all() const noexcept { return shards_; }

  // Throws error(invalid_argument) for any other key.
  std::pair<const one_shard*, const sample_locations*> find(const std::string& key) const;

  // An open archive of the size and the identity that were indexed.
  task<std::shared_ptr<const byte_reader>> open(const one_shard& shard);

 private:
  static constexpr std::size_t most_open = 64;

  std::shared_ptr<const byte_reader> opened(const one_shard& shard);
  void keep(const one_shard& shard, std::shared_ptr<const byte_reader> archive);

  io::shards listed_;
  sample_fields fields_;
  std::vector<one_shard> shards_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
  std::vector<std::uint64_t> ends_;  // of each shard: the number of samples up to its end

  std::mutex mutex_;  // guards the members below
  std::vector<std::pair<const one_shard*, std::shared_ptr<const byte_reader>>>
      open_;  // latest last
};

}  // namespace lade::detail
