// Whole files that may be absent.

#pragma once

#include <lade/buffer.hpp>
#include <lade/task.hpp>

#include <string>

namespace lade::io {

// As read_file, of a path that must outlive the task. Sets `is_absent` if there is no such file,
// and then returns nothing.
task<buffer> read_if_there(const std::string& path, bool& is_absent);

}  // namespace lade::io
