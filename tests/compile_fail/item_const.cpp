// error: items must be movable and assignable
#include <lade/from.hpp>

#include <map>
#include <string>

auto words = lade::from(std::map<std::string, int>{{"a", 1}});
