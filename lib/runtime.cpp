#include <lade/error.hpp>
#include <lade/runtime.hpp>

#include <cstdlib>
#include <string_view>

#include <unistd.h>

namespace lade {

void detail::require_blocking_allowed() {
  if (this_executor)
    throw error(errc::wrong_thread, "wait for a task", "a thread of a runtime must not block");
}

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
  reactor_ = detail::make_reactor(kind);
  pool_ = std::make_unique<thread_pool>(options.threads);
  reactor_->start_thread();
}

runtime::~runtime() {
  if (getpid() != process_) {  // the threads are the parent's
    (void)pool_.release();
    (void)reactor_.release();
    return;
  }
  reactor_->stop_thread();  // nor is it in the middle of a post to the pool then
  pool_.reset();
}

std::string runtime::describe() const {
  return std::to_string(pool_->size()) + " threads, " + reactor_->describe();
}

void runtime::require_same_process() const {
  if (getpid() != process_)
    throw error(errc::wrong_thread, "use a runtime",
                "the process was forked after the runtime was made");
}

}  // namespace lade
