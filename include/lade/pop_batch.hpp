// pop_batch: several values of a channel at once, for work that is cheaper in batches.

#pragma once

#include <lade/channel.hpp>
#include <lade/detail/common/require.hpp>
#include <lade/error.hpp>
#include <lade/sleep.hpp>
#include <lade/task.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace lade {

namespace detail {

// Appends values until the batch is full or the channel is closed and empty.
template <class T>
task<> pop_more(channel<T>& from, std::vector<T>& batch, std::size_t most) {
  while (batch.size() < most) {
    std::optional<T> next = co_await from.pop();
    if (!next) co_return;
    batch.push_back(std::move(*next));
  }
}

}  // namespace detail

// Awaits the oldest value of a channel, however long that takes, and then further values: until
// there are `most`, or `within` has passed since the first. Returns them in their order.
//
//   while (true) {
//     auto requests = co_await lade::pop_batch(queue, 32, std::chrono::milliseconds(5));
//     if (requests.empty()) break;  // the channel is closed and empty
//     co_await answer(std::move(requests));
//   }
//
// `most`: from 1 to 1,073,741,824. `within`: 0 or less returns the values that are in the channel.
//
// A channel that is closed ends the batch early. Any number of coroutines may take batches and
// single values of one channel; each value goes to one of them. Two that fill a batch at the same
// time share the values, so that both fill more slowly: let one coroutine take batches, and start
// the work on them beside it. The channel must outlive the await.
//
// The time is that of with_timeout, and so is the cost, unless the batch is full without a wait.
//
// Requires a runtime. Throws error(invalid_argument) for a `most` out of range. Throws
// error(stopped) when the awaiting coroutine is asked to stop; values of the unfinished batch are
// dropped. Close the channel to end without loss.
template <class T>
task<std::vector<T>> pop_batch(channel<T>& from, std::size_t most,
                               std::chrono::nanoseconds within) {
  detail::require_count("pop a batch", "most", most, {.least = 1, .most = detail::most_in_batch});
  std::vector<T> batch;
  co_await detail::pop_more(from, batch, 1);
  while (!batch.empty() && batch.size() < most) {
    auto next = from.try_pop();
    if (!next) break;
    batch.push_back(std::move(*next));
  }
  if (batch.empty() || batch.size() == most || within.count() <= 0) co_return batch;
  try {
    co_await with_timeout(within, detail::pop_more(from, batch, most));
  } catch (const error& failure) {
    if (failure.code() != errc::timed_out) throw;
  }
  co_return batch;
}

}  // namespace lade
