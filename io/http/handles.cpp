#include "handles.hpp"

#include <lade/error.hpp>
#include <lade/support/require.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <new>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace lade::io::http {

static void initialise_curl() {
  static const auto result = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (result != CURLE_OK)
    throw error(std::error_code(result, curl_category()), "initialise libcurl");
}

// A line break would start another header, and libcurl reads only up to a zero byte.
static void require_one_line(const char* doing, const char* option, std::string_view text) {
  constexpr std::string_view ends("\r\n\0", 3);
  if (text.find_first_of(ends) == text.npos) return;
  throw error(errc::invalid_argument, doing,
              std::string(option) + " has a line break or a zero byte in it");
}

static void require_there(const char* doing, const char* option, const std::string& path) {
  if (path.empty() || access(path.c_str(), R_OK) == 0) return;
  raise(errno, fmt::format("{}: {} is {}", doing, option, path));
}

client_settings::client_settings(const client_options& requested)
    : options(requested),
      ca_file(requested.ca_file),
      ca_directory(requested.ca_directory),
      certificate(requested.certificate),
      private_key(requested.private_key),
      proxy(requested.proxy),
      no_proxy(requested.no_proxy),
      netrc_file(requested.netrc_file),
      user_agent(requested.user_agent),
      through(proxy, no_proxy) {
  for (auto* text :
       {&options.ca_file, &options.ca_directory, &options.certificate, &options.private_key,
        &options.proxy, &options.no_proxy, &options.netrc_file, &options.user_agent})
    *text = {};  // the caller's memory may end; the copies are used
  constexpr auto stage = "make an HTTP client";
  const std::pair<const char*, const std::string*> files[] = {{"ca_file", &ca_file},
                                                              {"ca_directory", &ca_directory},
                                                              {"certificate", &certificate},
                                                              {"private_key", &private_key},
                                                              {"netrc_file", &netrc_file}};
  for (auto& [option, path] : files) require_one_line(stage, option, *path);
  require_one_line(stage, "proxy", proxy);
  require_one_line(stage, "no_proxy", no_proxy);
  require_one_line(stage, "user_agent", user_agent);
  if (options.retry.attempts == 0) options.retry.attempts = 5;
  require_retry(stage, options.retry);
  support::require_duration(stage, "longest_pause", options.longest_pause);
  support::require_duration(stage, "connect_timeout", options.connect_timeout,
                            std::chrono::milliseconds(1));
  support::require_duration(stage, "stall_timeout", options.stall_timeout,
                            std::chrono::milliseconds(1));
  support::require_duration(stage, "idle_timeout", options.idle_timeout, std::chrono::seconds(1));
  support::require_duration(stage, "timeout", options.timeout);
  support::require_duration(stage, "deadline", options.deadline);
  support::require_count(stage, "connections_per_host", options.connections_per_host, {.least = 1});
  support::require_count(stage, "requests", options.requests, {.least = 1});
  support::require_count(stage, "bytes_in_flight", options.bytes_in_flight,
                         {.least = 1, .most = ~std::uint64_t{0}});
  support::require_count(stage, "redirects", options.redirects, {.most = 100});
  if (!private_key.empty() && certificate.empty())
    throw error(errc::invalid_argument, stage, "private_key without a certificate");
  for (auto& [option, path] : files) require_there(stage, option, *path);
  initialise_curl();
}

// Clamps to int, since libcurl ignores larger numbers: 24 days of milliseconds.
static long curl_number(std::int64_t count) noexcept {
  return static_cast<long>(std::min<std::int64_t>(count, std::numeric_limits<int>::max()));
}

static void set_text(CURL* easy, CURLoption option, const std::string& text) {
  if (!text.empty() && curl_easy_setopt(easy, option, text.c_str()) != CURLE_OK)
    throw std::bad_alloc();
}

// Sets the options that some requests change.
void easy_handles::set_modes(CURL* easy) const noexcept {
  auto& options = settings_.options;
  auto netrc = settings_.has_netrc() ? CURL_NETRC_OPTIONAL : CURL_NETRC_IGNORED;
  curl_easy_setopt(easy, CURLOPT_NETRC, static_cast<long>(netrc));
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
                   options.http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, options.decompress ? "" : nullptr);
  curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 0L);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, curl_number(options.timeout.count()));
}

CURLcode easy_handles::set_certificate(CURL* easy) const noexcept {
  auto& certificate = settings_.certificate;
  auto& key = settings_.private_key;
  if (certificate.empty()) return CURLE_OK;
  auto result = curl_easy_setopt(easy, CURLOPT_SSLCERT, certificate.c_str());
  if (result != CURLE_OK || key.empty()) return result;
  return curl_easy_setopt(easy, CURLOPT_SSLKEY, key.c_str());
}

void easy_handles::set_options(CURL* easy) const {
  constexpr long longest_use = 600;  // seconds
  auto& options = settings_.options;
  set_modes(easy);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);  // libcurl looks up names of proxies itself
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);  // keys of objects may have components ".."
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 128L << 10);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, curl_number(options.connect_timeout.count()));
  curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, curl_number(options.idle_timeout.count()));
  curl_easy_setopt(easy, CURLOPT_MAXLIFETIME_CONN, longest_use);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, options.verify ? 1L : 0L);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, options.verify ? 2L : 0L);
  set_text(easy, CURLOPT_CAINFO, settings_.ca_file);
  set_text(easy, CURLOPT_CAPATH, settings_.ca_directory);
  if (set_certificate(easy) != CURLE_OK) throw std::bad_alloc();
  set_text(easy, CURLOPT_PROXY, settings_.proxy);
  if (set_no_proxy(easy) != CURLE_OK) throw std::bad_alloc();
  set_text(easy, CURLOPT_USERAGENT, settings_.user_agent);
  set_text(easy, CURLOPT_NETRC_FILE, settings_.netrc_file);
}

CURLcode easy_handles::set_no_proxy(CURL* easy) const noexcept {
  auto& hosts = settings_.no_proxy;
  return curl_easy_setopt(easy, CURLOPT_NOPROXY, hosts.empty() ? nullptr : hosts.c_str());
}

easy_handle easy_handles::take() {
  {
    std::lock_guard lock(mutex_);
    if (!kept_.empty()) {
      auto handle = std::move(kept_.back());
      kept_.pop_back();
      return handle;
    }
  }
  easy_handle made(curl_easy_init());
  if (!made) throw std::bad_alloc();
  set_options(made.get());
  return made;
}

void easy_handles::give_back(easy_handle handle) noexcept {
  auto* easy = handle.get();
  curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
  curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, nullptr);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, nullptr);
  curl_easy_setopt(easy, CURLOPT_RESOLVE, nullptr);
  curl_easy_setopt(easy, CURLOPT_RANGE, nullptr);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, nullptr);
  curl_easy_setopt(easy, CURLOPT_VERBOSE, 0L);
  set_modes(easy);
  if (settings_.through.any() && set_no_proxy(easy) != CURLE_OK) return;
  if (set_certificate(easy) != CURLE_OK) return;
  std::lock_guard lock(mutex_);
  if (kept_.size() < most_kept) try {
      kept_.push_back(std::move(handle));
    } catch (const std::bad_alloc&) {}
}

}  // namespace lade::io::http
