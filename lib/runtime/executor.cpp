#include <lade/detail/runtime/activity.hpp>
#include <lade/detail/runtime/executor.hpp>

namespace lade::detail {

constinit thread_local executor* this_executor = nullptr;
constinit thread_local activity* this_activity = nullptr;

}  // namespace lade::detail
