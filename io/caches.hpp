// The common parts of caches of stores.

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

// The epoch of a run as caches count it. The largest number counts as the one before, so that each
// epoch has a successor.
inline std::uint64_t counted_epoch(std::uint64_t of_run) noexcept {
  return std::min(of_run, std::numeric_limits<std::uint64_t>::max() - 1);
}

// Returns the store of a cache. Throws error(invalid_argument) if it is null.
inline std::shared_ptr<const io::store> require_store(std::string_view doing,
                                                      std::shared_ptr<const io::store> upstream) {
  if (!upstream) throw error(errc::invalid_argument, doing, "the store is null");
  return upstream;
}

}  // namespace lade::detail
