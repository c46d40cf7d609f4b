// Lists of shards, which are files of samples with numbered names.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/sample.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lade::io {

// Expands the braces of a pattern into names, in the order in which a shell writes them:
//
//   lade::io::shards("s-{000..127}.tar")     s-000.tar to s-127.tar
//   lade::io::shards("{train,val}/{0..9}.tar")
//
// A range consists of integers, ascending or descending. If a bound begins with 0, all numbers are
// padded with zeros to the length of the longer bound.
//
// The object is a listing of samples without data, whose keys are the names. The file system is not
// accessed. The listing is indexed, so a following shuffle and shard are exact and free.
// Checkpoints compare the names without the directories that all names have in common, and URLs
// without signatures.
class shards {
 public:
  static constexpr std::size_t max_shards = 10'000'000;

  // Throws error(invalid_argument) for braces that are unbalanced, nested or empty, or that hold
  // neither a list nor a range. Throws error(limit_exceeded) for more than max_shards names.
  explicit shards(std::string_view pattern);

  // Shards with any other names. Throws error(invalid_argument) if there are none, or one is empty.
  explicit shards(std::vector<std::string> names);

  const std::vector<std::string>& names() const noexcept { return names_; }

  async_generator<sample> list() const;
  std::vector<sample> list_all() const;
  std::string identity_of(const sample& shard) const;

 private:
  std::vector<std::string> names_;
  std::size_t common_ = 0;  // bytes of the common directories of all names
};

}  // namespace lade::io
