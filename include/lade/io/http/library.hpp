// The libraries behind HTTP, for reports of failures.

#pragma once

#include <string>

namespace lade::io::http {

// Returns the names and versions of libcurl and of the libraries that it uses, as in
// "libcurl/7.88.1 OpenSSL/3.0.15 zlib/1.2.13". These are the loaded libraries, which may be newer
// than the libraries at compile time. Any thread may call it.
std::string describe();

}  // namespace lade::io::http
