// error: lade::from: an index source has size(), at(index) and identity(), which returns a
// std::string, and all are callable as const
#include <lade/from.hpp>

#include <cstdint>

struct pages {
  std::uint64_t size() const { return 3; }
  int at(std::uint64_t i) const { return static_cast<int>(i); }
};

auto all = lade::from(pages());
