// pop_batch: pops several values of a channel at once, for work that is cheaper in batches.

#pragma once

#include <lade/channel.hpp>
#include <lade/error.hpp>
#include <lade/sleep.hpp>
#include <lade/support/require.hpp>
#include <lade/task.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace lade {

namespace detail {

// Appends values of `from` until the batch has `most` or the channel is closed and empty.
template <class T>
task<> pop_more(channel<T>& from, std::vector<T>& batch, std::size_t most) {
  while (batch.size() < most) {
    std::optional<T> next = co_await from.pop();
    if (!next) co_return;
    batch.push_back(std::move(*next));
  }
}

}  // namespace detail

// Awaits the oldest value of a channel without a time limit. Then awaits further values, until the
// batch has `most` values or `within` has passed since the first. Returns the values in their
// order. Returns no values if the channel is closed and empty:
//
//   while (true) {
//     auto requests = co_await lade::pop_batch(queue, 32, std::chrono::milliseconds(5));
//     if (requests.empty()) break;  // the channel is closed and empty
//     co_await answer(std::move(requests));
//   }
//
// `most`: from 1 to 1,073,741,824. `within`: with 0 or less, the call does not wait for further
// values, and takes only values that are in the channel already. When the channel is closed, the
// batch ends early.
//
// Lifetime: the channel must outlive the await.
//
// Thread: any number of coroutines may pop batches and single values of one channel. Each value
// goes to one of them. Two coroutines that fill batches at the same time share the values, so both
// batches fill more slowly. Let one coroutine pop batches, and start the work on them concurrently.
// Requires a runtime.
//
// Errors: throws error(invalid_argument) if `most` is out of range. Throws error(stopped) if the
// awaiting coroutine is asked to stop; the values of the unfinished batch are dropped. To end
// without loss, close the channel.
//
// Cost: that of with_timeout, unless the batch is full without a wait. The accuracy of the time is
// that of with_timeout, too.
template <class T>
task<std::vector<T>> pop_batch(channel<T>& from, std::size_t most,
                               std::chrono::nanoseconds within) {
  support::require_count("pop a batch", "most", most, {.least = 1, .most = support::most_in_batch});
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
