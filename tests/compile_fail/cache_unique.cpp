// error: items that cannot be copied cannot be kept
#include <lade/cache.hpp>

#include <memory>

using item = std::unique_ptr<int>;

auto kept(const lade::pipeline<item>& in) { return in | lade::cache(); }
