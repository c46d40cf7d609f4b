// Files in memory, page by page as they are touched.

#pragma once

#include <lade/buffer.hpp>

#include <string>

namespace lade::io {

// The content of a file, which must not be written to. The last copy of the buffer unmaps it.
// Blocks. Throws error that names the file.
buffer map_file(const std::string& path);

}  // namespace lade::io
