// What the primitives of coroutines synchronize threads with. They take it from here, so that a
// test can compile them with types that run every interleaving of their threads.

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
