// error: lade::map: items_at_a_time must be from 1 to 1,024
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/waiting_items.hpp>

#include <vector>

struct greedy {
  static constexpr unsigned items_at_a_time = 1025;
  int operator()(int i) const;
  void operator()(lade::waiting_items<int, int>& waiting) const;
};

auto same = lade::from(std::vector{1, 2}) | lade::map(greedy());
