// The compiled part of lade. To use lade without building a library, include this in exactly
// one .cpp file of the program. Image decoding has its own: lade/media/implementation.hpp.

#pragma once

#include "../../io/fallback.cpp"
#include "../../io/file.cpp"
#include "../../io/reactor.cpp"
#include "../../io/uring.cpp"
#include "../../lib/batch.cpp"
#include "../../lib/buffer.cpp"
#include "../../lib/buffer_pool.cpp"
#include "../../lib/error.cpp"
#include "../../lib/event.cpp"
#include "../../lib/executor.cpp"
#include "../../lib/index.cpp"
#include "../../lib/lineage.cpp"
#include "../../lib/operation.cpp"
#include "../../lib/reactor.cpp"
#include "../../lib/ring.cpp"
#include "../../lib/run_state.cpp"
#include "../../lib/runtime.cpp"
#include "../../lib/scope.cpp"
#include "../../lib/semaphore.cpp"
#include "../../lib/shard.cpp"
#include "../../lib/stats.cpp"
#include "../../lib/tensor.cpp"
#include "../../lib/thread_pool.cpp"
#include "../../lib/waiter.cpp"
