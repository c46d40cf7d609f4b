#include "byte_input.hpp"

#include <lade/error.hpp>
#include <lade/runtime.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace lade::media {

std::size_t memory_input::read(std::span<std::byte> into, std::uint64_t offset) {
  if (offset >= content_.size()) return 0;
  const auto rest = content_.bytes().subspan(static_cast<std::size_t>(offset));
  const auto count = std::min(into.size(), rest.size());
  std::copy_n(rest.begin(), count, into.begin());
  bytes_read_ += count;
  return count;
}

std::size_t blocking_input::read(std::span<std::byte> into, std::uint64_t offset) {
  const auto count = wait_on_reactor(*context_, from_->read_at(into, offset));
  if (count > into.size())
    throw error(errc::invalid_data, "read " + from_->name(),
                "its reader returned " + std::to_string(count) + " of " +
                    std::to_string(into.size()) + " bytes");
  bytes_read_ += count;
  return count;
}

}  // namespace lade::media
