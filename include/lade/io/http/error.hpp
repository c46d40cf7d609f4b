// What goes wrong with requests.

#pragma once

#include <system_error>

namespace lade::io::http {

// The code of an error that a server has answered with: the HTTP status, `status_code(404)`.
const std::error_category& status_category() noexcept;
inline std::error_code status_code(int status) noexcept { return {status, status_category()}; }

// The code of a transfer that has failed: libcurl's CURLcode.
const std::error_category& curl_category() noexcept;

}  // namespace lade::io::http
