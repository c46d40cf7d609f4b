// is_stop(): distinguishes cancellation from failure.

#pragma once

#include <lade/error.hpp>

#include <exception>

namespace lade::detail {

// Whether the exception is error(stopped).
inline bool is_stop(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const error& thrown) {
    return thrown.code() == errc::stopped;
  } catch (...) {
    return false;
  }
}

}  // namespace lade::detail
