// The one exception type of lade, and the codes of the failures that are lade's own.

#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace lade {

// Failures that no C library has a code for.
enum class errc {
  stopped = 1,       // the run, task or operation was asked to stop
  timed_out,         // a deadline passed
  closed,            // a channel or pool no longer takes part
  no_runtime,        // an operation that needs a runtime was awaited outside of one
  wrong_thread,      // a call on a thread that must not block, beside another, or after a fork
  invalid_argument,  // an option or argument that cannot work; the text names it
  invalid_data,      // bytes that are not what their format says
  unsupported,       // valid data of a kind that is not handled
  failed,            // a function threw an exception that has no code
  limit_exceeded,    // data that would need more than an option allows
  changed,           // an object that is another than the one that was read before
  abandoned,         // a promise that was destroyed without a result
};

const std::error_category& error_category() noexcept;
std::error_code make_error_code(errc code) noexcept;

// Failures that mean the same in several libraries, each with codes of its own. An error has one if
// `code() == condition::device_lost`; the category of its code decides.
enum class condition {
  // The process cannot use a device any more, such as a GPU after an illegal address in a kernel.
  // Every later call fails alike: the run ends, whatever its stages say of failures and retries.
  device_lost = 1,
};

const std::error_category& condition_category() noexcept;
std::error_condition make_error_condition(condition which) noexcept;

// What went wrong: `what()` is "<doing>: <why>", as in "open a.tar: No such file or directory".
// `code()` is for programs: a system error, an errc, or a code of the library that failed.
class error : public std::system_error {
 public:
  error(std::error_code code, std::string_view doing) : error(code, doing, code.message()) {}
  error(std::error_code code, std::string_view doing, std::string_view why)
      : std::system_error(code), text_(std::string(doing).append(": ").append(why)) {}

  const char* what() const noexcept override { return text_.what(); }

 private:
  std::runtime_error text_;  // a string that copies without throwing
};

// Throws error(errno_value as a system error, doing).
[[noreturn]] void raise(int errno_value, std::string_view doing);

}  // namespace lade

template <>
struct std::is_error_code_enum<lade::errc> : std::true_type {};
template <>
struct std::is_error_condition_enum<lade::condition> : std::true_type {};
