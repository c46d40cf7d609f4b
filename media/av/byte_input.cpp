#include "byte_input.hpp"

#include <lade/error.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

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

// Runs a task on a reactor of the context's runtime, with its stop, and blocks until it has
// finished.
template <class T>
static T block_on_reactor(const context& current, task<T> work) {
  auto& reactor = current.runtime->reactor();
  context surroundings = current;
  surroundings.home = &reactor;
  detail::promise_base root;
  root.context = &surroundings;
  detail::blocking_completion done;
  detail::start_job start(work, root, done);
  start.post(reactor);
  done.wait();
  return work.take();
}

std::size_t blocking_input::read(std::span<std::byte> into, std::uint64_t offset) {
  const auto count = block_on_reactor(*context_, from_->read_at(into, offset));
  if (count > into.size())
    throw error(errc::invalid_data, "read " + from_->name(),
                "its reader returned " + std::to_string(count) + " of " +
                    std::to_string(into.size()) + " bytes");
  bytes_read_ += count;
  return count;
}

}  // namespace lade::media
