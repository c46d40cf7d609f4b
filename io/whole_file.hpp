// Reads and opens files in lade's directories that may be absent. Anything but a regular file
// throws error, so that no FIFO blocks. Links are not followed, except by try_open_own to a regular
// file whose path the kernel has cached.

#pragma once

#include <lade/buffer.hpp>
#include <lade/io/file.hpp>
#include <lade/task.hpp>

#include <optional>
#include <string>

namespace lade::io {

// As read_file, for a name in an open directory. `name` must outlive the task. If there is no such
// file, sets `is_absent` and returns an empty buffer.
task<buffer> read_if_there(int directory, const std::string& name, bool& is_absent);

// As try_open.
task<std::optional<file>> try_open_own(std::string path);

}  // namespace lade::io
