// Error codes of HTTP requests.

#pragma once

#include <system_error>

namespace lade::io::http {

// The code of an error that the server reported: the HTTP status, as in `status_code(404)`.
const std::error_category& status_category() noexcept;
inline std::error_code status_code(int status) noexcept { return {status, status_category()}; }

// The code of a failed transfer: the CURLcode of libcurl.
const std::error_category& curl_category() noexcept;

}  // namespace lade::io::http
