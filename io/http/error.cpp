#include <lade/io/http/error.hpp>

#include <curl/curl.h>
#include <fmt/format.h>

namespace lade::io::http {

// The reason phrase of a status (RFC 9110, section 15; RFC 4918; RFC 6585; RFC 7725).
static std::string_view reason_of(int status) noexcept {
  switch (status) {
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 303: return "See Other";
    case 304: return "Not Modified";
    case 307: return "Temporary Redirect";
    case 308: return "Permanent Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 411: return "Length Required";
    case 412: return "Precondition Failed";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 416: return "Range Not Satisfiable";
    case 425: return "Too Early";
    case 428: return "Precondition Required";
    case 429: return "Too Many Requests";
    case 451: return "Unavailable For Legal Reasons";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 507: return "Insufficient Storage";
    default: return "";
  }
}

struct status_errors final : std::error_category {
  const char* name() const noexcept override { return "http"; }
  std::string message(int status) const override {
    auto reason = reason_of(status);
    if (reason.empty()) return fmt::format("status {}", status);
    return fmt::format("{} {}", status, reason);
  }
};

struct curl_errors final : std::error_category {
  const char* name() const noexcept override { return "curl"; }
  std::string message(int code) const override {
    return curl_easy_strerror(static_cast<CURLcode>(code));
  }
};

const std::error_category& status_category() noexcept {
  static const status_errors category;
  return category;
}

const std::error_category& curl_category() noexcept {
  static const curl_errors category;
  return category;
}

}  // namespace lade::io::http
