// error: lade::end_together: the function must take a bool, return a bool, and be copyable
#include <lade/equal_steps.hpp>
#include <lade/from.hpp>

#include <memory>
#include <utility>
#include <vector>

auto steps(std::unique_ptr<bool> any) {
  return lade::from(std::vector{1, 2}) |
         lade::end_together([any = std::move(any)](bool) { return *any; });
}
