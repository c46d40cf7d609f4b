// with_stop: work with an additional stop token.

#pragma once

#include <lade/context.hpp>
#include <lade/task.hpp>
#include <lade/this_context.hpp>

#include <stop_token>
#include <utility>

namespace lade {

// Awaits `work`, which is cancelled by `stop` as well as by the stop of the awaiting coroutine.
// Returns the result of the work or throws its exception: error(stopped) if its awaits were
// cancelled.
//
//   auto request = co_await lade::with_stop(ending, receive(client));  // ends with the server
//   co_await send(client, answer(request));                            // does not
//
// Returns only when the work has ended. Thread: the stop may be requested on any. Needs no runtime.
template <class T>
task<T> with_stop(std::stop_token stop, task<T> work) {
  auto& outer = co_await this_context_reference();
  std::stop_source either;
  auto pass_on = [&either] { detail::request_stop(either); };
  std::stop_callback on_outer_stop(outer.stop, pass_on);
  std::stop_callback on_stop(std::move(stop), pass_on);
  context inner = outer;
  inner.stop = either.get_token();
  co_return co_await with_context(inner, std::move(work));
}

}  // namespace lade
