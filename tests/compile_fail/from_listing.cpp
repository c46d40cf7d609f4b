// error: lade::from: a listing has list(), which returns a generator, and list_all(), and both are
#include <lade/async_generator.hpp>
#include <lade/from.hpp>

struct pages {
  lade::async_generator<int> list() const { co_yield 1; }
};

auto all = lade::from(pages());
