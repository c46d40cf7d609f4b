// fatal(): ends the process when a broken contract cannot be reported by an exception.

#pragma once

namespace lade::detail {

// Writes "lade: <sentence>" to standard error and aborts, in release builds too.
[[noreturn]] void fatal(const char* sentence) noexcept;

}  // namespace lade::detail
