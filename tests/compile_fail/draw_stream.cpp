// error: only items that are reached by index can be drawn
#include <lade/draw.hpp>
#include <lade/from.hpp>

#include <list>

auto drawn() { return lade::from(std::list<int>{1, 2}) | lade::draw({.weights = {1, 1}}); }
