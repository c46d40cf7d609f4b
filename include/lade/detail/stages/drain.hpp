// drain: takes the items of a generator and puts them into a link, or into the paths of a stage.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/task.hpp>

#include <exception>
#include <utility>

namespace lade::detail {

// Puts the items of `in` into a sink, one after the other, until `in` has ended or the sink has
// been closed. Calls the members of the sink in this order:
//
// - co_await to.capacity(): suspends until one more item fits. Returns false if the sink has been
//   closed.
// - Sink::input_wait(to): an object that lives while the next item of `in` is awaited.
// - to.put(item, origin): takes the item at this address, with its lineage. Returns nothing, or a
//   task that finishes the put if it must suspend, as a std::optional<task<>>. Then both are valid
//   until the task has ended.
// - to.put_rest(origin): at the end of `in`. The lineage is that of the items which `in` has
//   consumed and not yielded.
// - to.end(failure): last, also if `in` or another member has thrown `failure`. Null: neither has.
//   Its exceptions are those of drain().
template <class Sink>
task<> drain(generator in, Sink to) {
  std::exception_ptr failure;
  try {
    while (true) {
      const bool is_open = co_await to.capacity();
      if (!is_open) break;
      void* item = nullptr;
      {
        typename Sink::input_wait waiting(to);
        item = co_await in.next();
      }
      if (!item) {
        to.put_rest(in.unyielded());
        break;
      }
      auto later = to.put(item, in.origin());
      if (later) co_await std::move(*later);
    }
  } catch (...) {
    failure = std::current_exception();
  }
  to.end(std::move(failure));
}

}  // namespace lade::detail
