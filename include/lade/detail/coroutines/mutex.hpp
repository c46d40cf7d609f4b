// The types with which the coroutine primitives, slot_ring, split and reactor_await synchronise
// threads. A test replaces this header by one whose types run every interleaving of the threads.

#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace lade::detail {

using mutex = std::mutex;
using condition_variable = std::condition_variable;

template <class F>
using stop_callback = std::stop_callback<F>;

}  // namespace lade::detail
