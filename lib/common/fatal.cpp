#include <lade/detail/common/fatal.hpp>

#include <cstdio>
#include <cstdlib>

namespace lade::detail {

void fatal(const char* sentence) noexcept {
  std::fprintf(stderr, "lade: %s\n", sentence);
  std::abort();
}

}  // namespace lade::detail
