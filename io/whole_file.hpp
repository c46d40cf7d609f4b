// Files in directories of our own that may be absent. What is no regular file throws error: nobody
// waits for the other end of a FIFO. Links are not followed, but by try_open_own one to a regular
// file that the kernel has in memory.

#pragma once

#include <lade/buffer.hpp>
#include <lade/io/file.hpp>
#include <lade/task.hpp>

#include <optional>
#include <string>

namespace lade::io {

// As read_file, of a name in an open directory; the name must outlive the task. Sets `is_absent` if
// there is no such file, and then returns nothing.
task<buffer> read_if_there(int directory, const std::string& name, bool& is_absent);

// As try_open.
task<std::optional<file>> try_open_own(std::string path);

}  // namespace lade::io
