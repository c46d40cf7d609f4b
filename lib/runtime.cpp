#include <lade/detail/require.hpp>
#include <lade/error.hpp>
#include <lade/runtime.hpp>

#include <cstdlib>
#include <string_view>

#include <unistd.h>

namespace lade {

// What LADE_REACTOR says.
static reactor_kind reactor_from_environment() {
  auto* value = std::getenv("LADE_REACTOR");
  if (!value || !*value) return reactor_kind::automatic;
  if (value == std::string_view("io_uring")) return reactor_kind::io_uring;
  if (value == std::string_view("fallback")) return reactor_kind::fallback;
  throw error(errc::invalid_argument, "read LADE_REACTOR",
              "expected io_uring or fallback, got " + std::string(value));
}

runtime::runtime(const runtime_options& options)
    : memory_(options.memory_bytes), process_(getpid()) {
  auto kind = options.reactor;
  if (kind == reactor_kind::automatic) kind = reactor_from_environment();
  detail::require_count("make a runtime", "threads", options.threads,
                        {.most = detail::most_threads});
  detail::require_count("make a runtime", "reactors", options.reactors, {.least = 1, .most = 1024});
  for (unsigned i = 0; i < options.reactors; ++i) reactors_.push_back(detail::make_reactor(kind));
  pool_ = std::make_unique<thread_pool>(thread_pool_options{.threads = options.threads});
  try {
    for (auto& each : reactors_) each->start_thread();
  } catch (...) {  // the system has no more threads
    stop_reactors();
    throw;
  }
}

// After this none is in the middle of a post to the pool.
void runtime::stop_reactors() {
  for (auto& each : reactors_) each->stop_thread();
}

runtime::~runtime() {
  if (getpid() != process_) {  // the threads are the parent's
    (void)pool_.release();
    for (auto& each : reactors_) (void)each.release();
    return;
  }
  stop_reactors();
  pool_.reset();
}

detail::reactor& runtime::reactor() noexcept {
  if (reactors_.size() == 1) return *reactors_.front();
  for (auto& each : reactors_)
    if (each.get() == detail::this_executor) return *each;
  return reactor(next_reactor_.fetch_add(1, std::memory_order_relaxed));
}

std::string runtime::describe() const {
  auto several = reactors_.size() > 1 ? std::to_string(reactors_.size()) + " reactors: " : "";
  auto threads = pool_->size() == 1 ? "1 thread, " : std::to_string(pool_->size()) + " threads, ";
  return threads + several + reactors_.front()->describe();
}

void runtime::require_same_process() const {
  if (getpid() != process_)
    throw error(errc::wrong_thread, "use a runtime",
                "the process was forked after the runtime was made");
}

}  // namespace lade
