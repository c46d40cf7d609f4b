// A task for stages, which suspends for a random time.

#pragma once

#include <lade/random.hpp>
#include <lade/sleep.hpp>
#include <lade/task.hpp>

#include <chrono>

namespace lade::test {

template <class T>
task<T> same_later(T item, random draw) {
  co_await sleep(std::chrono::microseconds(draw.below(300)));
  co_return item;
}

}  // namespace lade::test
