#include <lade/continue_on.hpp>
#include <lade/detail/runtime/activity.hpp>
#include <lade/detail/runtime/executor.hpp>
#include <lade/runtime.hpp>

namespace lade {

namespace detail {

constinit thread_local executor* this_executor = nullptr;
constinit thread_local activity* this_activity = nullptr;

executor* cpu_pool_of(const context* execution) noexcept {
  return execution && execution->runtime ? &execution->runtime->pool() : nullptr;
}

}  // namespace detail

bool on_reactor_thread() noexcept { return detail::this_activity != nullptr; }

}  // namespace lade
