// Whole files that may be absent.

#pragma once

#include <lade/buffer.hpp>
#include <lade/task.hpp>

#include <string>

namespace lade::io {

// As read_file, of a name in an open directory; the name must outlive the task. Sets `is_absent` if
// there is no such file, and then returns nothing.
task<buffer> read_if_there(int directory, const std::string& name, bool& is_absent);

}  // namespace lade::io
