#include <lade/detail/stages/link.hpp>
#include <lade/detail/stages/split.hpp>
#include <lade/error.hpp>
#include <lade/support/require.hpp>
#include <lade/tee.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace lade::detail {

tee_core::tee_core(const tee_options& options)
    : buffer_(options.buffer),
      buffer_bytes_(options.buffer_bytes),
      name_(options.name.empty() ? "tee" : options.name) {
  support::require_count(name_, "buffer", options.buffer);
}

// The stage ends with its shortest path.
node_facts tee_core::facts(node_ptr in, std::vector<node_ptr> ends) const {
  auto size = in->facts().size();
  for (auto& each : ends) {
    auto of_path = each->facts().size();
    size = size && of_path ? std::optional(std::min(*size, *of_path)) : std::nullopt;
  }
  const auto buffer = split_base::at_least_one(buffer_);
  const auto held = split_base::held_in_step(ends.size(), buffer_) +
                    ends.size() * link_options::results(buffer).ring.slots;
  return node_facts::split_of(std::move(in), std::move(ends), "tee", name_)
      .yielding(cardinality::group, size)
      .pairing()
      .joining()
      .holding(held)
      .with("buffer", buffer_)
      .with_limit("buffer_bytes", buffer_bytes_);
}

void throw_standstill(const split_base& split, const split_base::standstill& paths) {
  const bool is_limited = split.bytes() != unlimited_bytes;
  throw error(errc::limit_exceeded, fmt::format("take a result of path {}", paths.awaited),
              fmt::format("the path needs another item, but the result queue of path {} is full "
                          "(buffer: {}{}); raise tee_options::buffer{}",
                          paths.full, split.buffer(),
                          is_limited ? fmt::format(", buffer_bytes: {}", split.bytes()) : "",
                          is_limited ? " or buffer_bytes" : ""));
}

}  // namespace lade::detail
