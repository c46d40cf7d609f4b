// error: lade::map: a function with items_at_a_time must also take waiting_items<In, Out>&
#include <lade/from.hpp>
#include <lade/map.hpp>

#include <vector>

struct twice {
  static constexpr unsigned items_at_a_time = 2;
  long operator()(int item) const { return 2L * item; }
  void operator()(lade::waiting_items<int, int>&) const {}  // gives another type
};

auto items = lade::from(std::vector{1}) | lade::map(twice());
