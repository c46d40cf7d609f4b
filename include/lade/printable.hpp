// Text that is safe to show on a terminal.

#pragma once

#include <string>
#include <string_view>

namespace lade {

// Replaces everything but visible characters of UTF-8 by escapes: control characters and bytes that
// are not UTF-8 by \xHH, line breaks by \n, tabs by \t. Reason: a file name may contain sequences
// that control the terminal, such as moving its cursor.
//
// Tables, bottleneck reports, dashboards and stall reports contain printable names. Errors and
// failures keep the bytes, so that a program finds the file: make their text printable before
// showing it to a person.
std::string printable(std::string_view text);

}  // namespace lade
