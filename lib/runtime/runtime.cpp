#include <lade/continue_on.hpp>
#include <lade/detail/common/fatal.hpp>
#include <lade/error.hpp>
#include <lade/runtime.hpp>
#include <lade/support/require.hpp>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

namespace lade {

// The backend that LADE_REACTOR names.
static reactor_kind reactor_from_environment() {
  auto* value = std::getenv("LADE_REACTOR");
  if (!value || !*value) return reactor_kind::automatic;
  if (value == std::string_view("io_uring")) return reactor_kind::io_uring;
  if (value == std::string_view("fallback")) return reactor_kind::fallback;
  throw error(errc::invalid_argument, "read LADE_REACTOR",
              "expected io_uring or fallback, got " + std::string(value));
}

static std::size_t most_reactors(const runtime_options& options) {
  return options.reactors > 0 ? options.reactors : std::min(available_cpus(), 16u);
}

static memory_resource& memory_of(const runtime_options& options) {
  require_host_accessible("make a runtime", options.memory);
  return options.memory ? *options.memory : host_memory();
}

runtime::runtime(const runtime_options& options)
    : memory_(options.memory_bytes, memory_of(options)),
      kind_(options.reactor),
      process_(getpid()) {
  if (kind_ == reactor_kind::automatic) kind_ = reactor_from_environment();
  support::require_count("make a runtime", "threads", options.threads,
                         {.most = support::most_threads});
  support::require_count("make a runtime", "reactors", options.reactors, {.most = 1024});
  reactors_.resize(most_reactors(options));
  pool_ = std::make_unique<thread_pool>(thread_pool_options{.threads = options.threads});
  watchdog_ = std::make_unique<detail::watchdog>();
  try {
    do add_reactor();
    while (reactor_count() < options.reactors);
  } catch (...) {  // the system has no more threads
    stop_reactors();
    throw;
  }
}

void runtime::add_reactor() {
  auto count = reactor_count();
  auto added = detail::make_reactor(kind_);
  if (reactors_.size() > 1) added->report_busy([this] { add_reactor_if_needed(); });
  added->start_thread();
  try {
    watchdog_->watch(added->current());
  } catch (...) {
    added->stop_thread();
    throw;
  }
  reactors_[count] = std::move(added);
  reactor_count_.store(count + 1, std::memory_order_release);
}

// Called on the thread of a busy reactor. If another reactor cannot be created, the existing ones
// serve all work.
void runtime::add_reactor_if_needed() noexcept {
  std::unique_lock lock(growing_, std::try_to_lock);
  if (!lock || ending_ || reactor_count() == reactors_.size()) return;
  try {
    add_reactor();
  } catch (const std::exception&) {}
}

// Afterwards no reactor posts to the pool any more.
void runtime::stop_reactors() {
  {
    std::lock_guard lock(growing_);
    ending_ = true;
  }
  for (std::size_t i = 0; i < reactor_count(); ++i) reactors_[i]->stop_thread();
}

runtime::~runtime() {
  if (getpid() != process_) {  // a forked child has no threads to join: leaks all members
    (void)new auto(std::move(services_));
    (void)watchdog_.release();
    (void)pool_.release();
    for (auto& each : reactors_) (void)each.release();
    return;
  }
  if (uses_ > 0) detail::fatal("a runtime was destroyed before a run or a task on it had ended");
  auto is_own = [](auto& each) { return each && each->is_current(); };
  if (is_own(pool_) || std::ranges::any_of(reactors_, is_own))
    detail::fatal("a runtime was destroyed on one of its own threads");
  end_services();
  stop_reactors();
  watchdog_.reset();
  pool_.reset();
}

void* runtime::find_service(const void* kind, std::shared_ptr<void> (*make)(runtime&)) {
  std::lock_guard lock(making_service_);
  auto found = std::ranges::find(services_, kind, &kept_service::kind);
  if (found != services_.end()) return found->object.get();
  return services_.emplace_back(kept_service{kind, make(*this)}).object.get();
}

// In reverse order, since a service may use earlier ones until it has ended.
void runtime::end_services() {
  while (true) {
    std::shared_ptr<void> last;
    std::lock_guard lock(making_service_);
    if (services_.empty()) return;
    last = std::move(services_.back().object);
    services_.pop_back();
  }
}

detail::reactor& runtime::reactor() noexcept {
  auto count = reactor_count();
  for (std::size_t i = 0; i < count && count > 1; ++i)
    if (reactors_[i].get() == detail::this_executor) return *reactors_[i];
  return reactor(count > 1 ? next_reactor_.fetch_add(1, std::memory_order_relaxed) : 0);
}

detail::reactor& detail::reactor_to_wait_for(const context& execution) {
  constexpr auto doing = "wait for a reactor";
  if (!execution.runtime) throw error(errc::no_runtime, doing);
  if (on_reactor_thread())
    throw error(errc::wrong_thread, doing, "the thread of a reactor must not block");
  return execution.runtime->reactor();
}

std::string runtime::describe() const {
  auto count = reactor_count();
  auto several = count > 1 ? fmt::format("{} reactors: ", count) : "";
  auto threads = pool_->size() == 1 ? "1 thread, " : fmt::format("{} threads, ", pool_->size());
  return threads + several + reactors_.front()->describe();
}

void runtime::require_same_process() const {
  if (getpid() != process_)
    throw error(errc::wrong_thread, "use a runtime",
                "the process was forked after the runtime was made");
}

}  // namespace lade
