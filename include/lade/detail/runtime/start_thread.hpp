// start_thread(): starts a thread, and throws lade's error if the system has no more.

#pragma once

#include <lade/error.hpp>

#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace lade::detail {

// Starts a thread that calls `call`. `whose`: the owner of the thread, for the error that is thrown
// if the system refuses.
template <class... Call>
std::thread start_thread(std::string_view whose, Call&&... call) {
  try {
    return std::thread(std::forward<Call>(call)...);
  } catch (const std::system_error& refused) {
    raise(refused.code().value(), "start a thread of " + std::string(whose));
  }
}

}  // namespace lade::detail
