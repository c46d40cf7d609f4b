// Lists of shards: files of samples whose names are numbered.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/sample.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lade::io {

// The names that a pattern with braces stands for, in the order in which a shell writes them:
//
//   lade::io::shards("s-{000..127}.tar")     s-000.tar to s-127.tar
//   lade::io::shards("{train,val}/{0..9}.tar")
//
// A range is of integers, up or down. Numbers are as long as the longer bound if one begins with 0.
// A listing of samples without data, whose keys are the names; nothing is looked for in the file
// system. It is reached by index, so shuffle and shard behind it are exact and free. States
// compare the names behind the directories that all of them have in common, of URLs without
// signatures.
class shards {
 public:
  static constexpr std::size_t max_shards = 10'000'000;

  // Throws error(invalid_argument) for braces that are not closed, nested, empty, or hold neither a
  // list nor a range, and error(limit_exceeded) for more than max_shards names.
  explicit shards(std::string_view pattern);

  // Shards that are called something else. Throws error(invalid_argument) if there are none.
  explicit shards(std::vector<std::string> names);

  const std::vector<std::string>& names() const noexcept { return names_; }

  async_generator<sample> list() const;
  std::vector<sample> list_all() const;
  std::string identity_of(const sample& shard) const;

 private:
  std::vector<std::string> names_;
  std::size_t common_ = 0;  // bytes of the directories that all names begin with
};

}  // namespace lade::io
