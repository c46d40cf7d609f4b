// The one exception type of lade, and the codes of lade's own failures.

#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace lade {

// Failures for which no C library has a code.
enum class errc {
  stopped = 1,       // the run, task or operation was asked to stop
  timed_out,         // a timeout or deadline expired
  closed,            // a channel was closed, or a promise or future was used before
  no_runtime,        // an operation that requires a runtime was awaited outside one
  wrong_thread,      // a call on a thread that must not block, during another, or after a fork
  invalid_argument,  // an option or argument that cannot work; the text names it
  invalid_data,      // bytes that violate their format
  unsupported,       // valid data of an unsupported kind
  failed,            // an exception or failure without a more specific code
  limit_exceeded,    // data that exceeds a limit, such as that of an option
  changed,           // an object that changed since it was read before
  abandoned,         // a promise that was destroyed without a result
};

const std::error_category& error_category() noexcept;
std::error_code make_error_code(errc code) noexcept;

// Failures that several libraries report with different codes. The category of a code decides
// whether an error has a condition: `code() == condition::device_lost`.
enum class condition {
  // The process can no longer use a device, such as a GPU after an illegal address in a kernel.
  // Every later call fails too. So the run ends, with any options for failures and retries.
  device_lost = 1,
};

const std::error_category& condition_category() noexcept;
std::error_condition make_error_condition(condition which) noexcept;

// A failure: `what()` is "<doing>: <why>", as in "open a.tar: No such file or directory". `code()`
// is for programs: a system error, an errc, or a code of the library that failed.
class error : public std::system_error {
 public:
  error(std::error_code code, std::string_view doing) : error(code, doing, code.message()) {}
  error(std::error_code code, std::string_view doing, std::string_view why)
      : std::system_error(code), text_(std::string(doing).append(": ").append(why)) {}

  const char* what() const noexcept override { return text_.what(); }

 private:
  std::runtime_error text_;  // a string whose copies do not throw
};

// Throws error(errno_value as a system error, doing).
[[noreturn]] void raise(int errno_value, std::string_view doing);

}  // namespace lade

template <>
struct std::is_error_code_enum<lade::errc> : std::true_type {};
template <>
struct std::is_error_condition_enum<lade::condition> : std::true_type {};
