// GCC before 13 destroys some temporaries inside of awaiting expressions twice. Where a user's own
// coroutine could meet that, this turns it into a message.

#pragma once

#include <type_traits>

namespace lade::detail {

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
// GCC destroys an aggregate that is built inside a co_yield or co_await expression twice.
template <class T>
constexpr bool safe_in_await = !std::is_aggregate_v<T> || std::is_trivially_destructible_v<T>;
#else
template <class T>
constexpr bool safe_in_await = true;
#endif

}  // namespace lade::detail
