// error: lade::from: at(i) of an index source must return the item
#include <lade/from.hpp>

#include <cstdint>
#include <string>

struct pages {
  std::uint64_t size() const { return 3; }
  void at(std::uint64_t) const {}
  std::string identity() const { return "pages"; }
};

auto all = lade::from(pages());
