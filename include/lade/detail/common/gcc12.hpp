// A check for a fault of GCC before 13, which destroys some temporaries in awaiting expressions
// twice. It makes the fault a compile-time error in coroutines of users.

#pragma once

#include <type_traits>

namespace lade::detail {

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
// Whether a temporary of type T may be built inside a co_yield or co_await expression. The faulty
// compilers destroy aggregates there twice.
template <class T>
constexpr bool safe_in_await = !std::is_aggregate_v<T> || std::is_trivially_destructible_v<T>;
#else
template <class T>
constexpr bool safe_in_await = true;
#endif

}  // namespace lade::detail
