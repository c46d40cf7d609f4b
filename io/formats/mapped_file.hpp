// Maps files into memory.

#pragma once

#include <lade/buffer.hpp>

#include <string>

namespace lade::io {

// Maps the content of a file, which must not be written to. Pages are read when they are touched.
// The last copy of the buffer unmaps it. Blocks. Throws error naming the file.
buffer map_file(const std::string& path);

}  // namespace lade::io
