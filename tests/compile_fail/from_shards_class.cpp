// error: lade::from_shards: a class of shards has size(), name(index), identity() and read(index)
#include <lade/from_shards.hpp>

#include <cstdint>
#include <string>
#include <vector>

struct logs {
  std::uint64_t size() const { return 3; }
  std::string name(std::uint64_t i) const { return std::to_string(i); }
  std::string identity() const { return "logs"; }
  std::vector<int> read(std::uint64_t) const { return {}; }  // no generator
};

auto lines = lade::from_shards(logs());
