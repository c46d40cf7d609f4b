// error: lade::map: a function of tasks takes one item at a time
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/task.hpp>
#include <lade/waiting_items.hpp>

#include <vector>

struct later {
  static constexpr unsigned items_at_a_time = 2;
  lade::task<int> operator()(int i) const;
  void operator()(lade::waiting_items<int, int>& waiting) const;
};

auto same = lade::from(std::vector{1, 2}) | lade::map(later());
