// What caches of stores have in common.

#pragma once

#include <lade/error.hpp>
#include <lade/io/store.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

namespace lade::detail {

// Of a run, as caches count it. There is always one behind it: the last number that an epoch can
// have counts as the one before.
inline std::uint64_t counted_epoch(std::uint64_t of_run) noexcept {
  return std::min(of_run, std::numeric_limits<std::uint64_t>::max() - 1);
}

// The store of a cache, unless it is null: then error(invalid_argument).
inline std::shared_ptr<const io::store> require_store(std::string_view doing,
                                                      std::shared_ptr<const io::store> upstream) {
  if (!upstream) throw error(errc::invalid_argument, doing, "no store is given");
  return upstream;
}

}  // namespace lade::detail
