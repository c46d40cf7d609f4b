#include <lade/detail/executor.hpp>

namespace lade::detail {

constinit thread_local executor* this_executor = nullptr;

}  // namespace lade::detail
