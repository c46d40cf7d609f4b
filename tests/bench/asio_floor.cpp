// asio's coroutines, started on a pool of two threads, until all have ended.

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/thread_pool.hpp>

#include <atomic>

#include "bench.hpp"

static asio::awaitable<void> count(std::atomic<std::size_t>& done) {
  done.fetch_add(1, std::memory_order_relaxed);
  co_return;
}

int main(int argc, char** argv) {
  bench::options options(argc, argv, "Starts coroutines on asio's thread pool.");
  auto items = options.number("items", 1'000'000, "coroutines");
  options.done();
  std::atomic<std::size_t> done = 0;
  bench::stopwatch clock;
  asio::thread_pool pool(2);
  for (std::size_t i = 0; i < items; ++i) asio::co_spawn(pool, count(done), asio::detached);
  pool.join();
  if (done != items) bench::fail("asio lost a coroutine");
  bench::print_each("asio_co_spawn", clock, items);
}
