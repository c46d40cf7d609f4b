// Text for terminals.

#pragma once

#include <string>
#include <string_view>

namespace lade {

// The text with all that is no visible character of UTF-8 replaced by an escape: control characters
// and bytes that are not UTF-8 by \xHH, line breaks by \n, tabs by \t. A file may be called
// anything, also what moves the cursor of the terminal that its name is written to.
//
// Tables, verdicts, dashboards and stall reports are made of printable names. Errors and failures
// keep the bytes as they are, so that a program finds the file: make their text printable before
// it is shown to a person.
std::string printable(std::string_view text);

}  // namespace lade
