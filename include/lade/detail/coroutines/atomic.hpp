// The atomic variables with which rendezvous and reactor_await synchronise threads. A test replaces
// this header by one whose type runs every interleaving of the threads.

#pragma once

#include <atomic>

namespace lade::detail {

template <class T>
using atomic = std::atomic<T>;

}  // namespace lade::detail
