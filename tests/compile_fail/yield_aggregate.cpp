// error: yield a named object without std::move
#include <lade/async_generator.hpp>

#include <string>

struct item {
  std::string name;
};

lade::async_generator<item> items() { co_yield item{"name"}; }
