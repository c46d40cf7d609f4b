// Awaits work on the CPU pool from a coroutine of a reactor.

#pragma once

#include <lade/continue_on.hpp>
#include <lade/runtime.hpp>
#include <lade/task.hpp>
#include <lade/this_context.hpp>
#include <lade/thread_pool.hpp>

#include <utility>

namespace lade::cuda {

template <class T>
task<T> begin_on(thread_pool& pool, task<T> work) {
  co_await continue_on(pool);
  co_return co_await std::move(work);
}

// Awaits `work` on the CPU pool of the runtime: it starts there, and resumes there after each of
// its awaits. The driver may block, and decoders compute, which a reactor thread must not. Outside
// of a runtime, the work runs inline.
template <class T>
task<T> on_cpu_pool(task<T> work) {
  auto local = co_await this_context();
  if (!local.runtime) co_return co_await std::move(work);
  auto& pool = local.runtime->pool();
  local.home = &pool;
  auto moved = begin_on(pool, std::move(work));
  co_return co_await lade::with_context(local, std::move(moved));
}

}  // namespace lade::cuda
