// The end of a process that has broken a contract where nobody could catch an exception.

#pragma once

namespace lade::detail {

// Writes "lade: <sentence>" to standard error and aborts, in release builds too.
[[noreturn]] void fatal(const char* sentence) noexcept;

}  // namespace lade::detail
