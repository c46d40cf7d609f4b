// What goes wrong with requests.

#pragma once

#include <lade/error.hpp>

#include <string>
#include <string_view>
#include <system_error>

namespace lade::io::http {

// The code of an error that a server has answered with: the HTTP status, `status_code(404)`.
const std::error_category& status_category() noexcept;
inline std::error_code status_code(int status) noexcept { return {status, status_category()}; }

// The code of a transfer that has failed: libcurl's CURLcode.
const std::error_category& curl_category() noexcept;

// The URL as errors, traces and statistics show it: without user information, and with the values
// of query parameters left out, except those that only name objects (prefix, delimiter, partNumber
// and the like). So no password, token or signature is shown.
std::string without_secrets(std::string_view url);

}  // namespace lade::io::http
