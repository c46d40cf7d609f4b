// Starts threads.

#pragma once

#include <lade/error.hpp>

#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace lade::detail {

// A thread that calls `call`, one of `whose`. Throws error with that name if the system has no
// more.
template <class... Call>
std::thread start_thread(std::string_view whose, Call&&... call) {
  try {
    return std::thread(std::forward<Call>(call)...);
  } catch (const std::system_error& refused) {
    raise(refused.code().value(), "start a thread of " + std::string(whose));
  }
}

}  // namespace lade::detail
