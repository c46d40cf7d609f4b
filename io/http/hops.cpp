#include "hops.hpp"

#include "ranges.hpp"
#include "resolver.hpp"

#include <lade/error.hpp>
#include <lade/printable.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <utility>

#include <fmt/format.h>

namespace lade::io::http {

static curl_list with_line(curl_list list, const std::string& line) {
  auto* longer = curl_slist_append(list.get(), line.c_str());
  if (!longer) throw std::bad_alloc();
  (void)list.release();
  return curl_list(longer);
}

static void set_method(transfer& hop, const request& request) {
  auto* easy = hop.handle();
  if (request.method() == "GET") {
    curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
  } else if (request.method() == "HEAD") {
    curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
  } else if (request.method() == "DELETE") {
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "DELETE");
  } else {
    hop.outgoing = request.body;
    auto bytes = static_cast<curl_off_t>(request.body.size());
    bool is_put = request.method() == "PUT";
    curl_easy_setopt(easy, is_put ? CURLOPT_UPLOAD : CURLOPT_POST, 1L);
    curl_easy_setopt(easy, is_put ? CURLOPT_INFILESIZE_LARGE : CURLOPT_POSTFIELDSIZE_LARGE, bytes);
  }
}

// A line break in a header would start another header, and a zero byte would end it.
static void require_one_line(const std::string& name, const std::string& value) {
  constexpr std::string_view ends("\r\n\0", 3);
  if ((name + value).find_first_of(ends) == std::string::npos && !name.empty()) return;
  throw error(errc::invalid_argument, "send header " + printable(name),
              "a line break or a zero byte in it, or no name");
}

static task<> add_own_headers(client::state& client, const request& request, const route& way,
                              header_list& headers) {
  headers.insert(headers.end(), request.headers.begin(), request.headers.end());
  if (auto* token = client.token_for(way.at)) {
    auto bearer = co_await (*token)(way.token_was_refused);
    if (bearer.empty())
      throw error(errc::invalid_argument, "authorize " + way.at.authority(), "the token is empty");
    headers.emplace_back("Authorization", "Bearer " + bearer);
  }
  if (request.sign) co_await request.sign(request, headers);
}

task<header_list> make_headers(client::state& client, const request& request, const route& way,
                               std::string if_match) {
  header_list headers;
  if (!if_match.empty()) headers.emplace_back("If-Match", std::move(if_match));
  if (way.is_own) co_await add_own_headers(client, request, way, headers);
  if (request.method() == "PUT" || request.method() == "POST") headers.emplace_back("Expect", "");
  co_return headers;
}

void set_up(transfer& hop, const request& request, const route& way, const byte_range& range,
            const header_list& headers) {
  for (auto& [name, value] : headers) {
    require_one_line(name, value);
    hop.headers = with_line(std::move(hop.headers),
                            fmt::format("{}:{}{}", name, value.empty() ? "" : " ", value));
  }
  auto* easy = hop.handle();
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, hop.headers.get());
  set_method(hop, request);
  if (!range.is_all()) {
    curl_easy_setopt(easy, CURLOPT_RANGE, range_text(range).c_str());
    curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, nullptr);  // a part cannot be decompressed
  }
  if (!way.is_own) {
    curl_easy_setopt(easy, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    curl_easy_setopt(easy, CURLOPT_SSLCERT, nullptr);
    curl_easy_setopt(easy, CURLOPT_SSLKEY, nullptr);
  }
  if (curl_easy_setopt(easy, CURLOPT_URL, way.url.c_str()) != CURLE_OK) throw std::bad_alloc();
}

void share_connection(client::state& client, transfer& hop, const origin& host) {
  if (!client.settings.options.http2 || host.scheme != "https") return;
  std::lock_guard lock(client.mutex);
  bool is_shared = client.multiplexed.contains(host.authority());
  curl_easy_setopt(hop.handle(), CURLOPT_PIPEWAIT, is_shared ? 1L : 0L);
}

void record_version(client::state& client, const transfer& ended, const origin& host) {
  constexpr std::size_t most = 4096;
  if (!client.settings.options.http2 || host.scheme != "https") return;
  long version = 0;
  curl_easy_getinfo(ended.handle(), CURLINFO_HTTP_VERSION, &version);
  if (version < CURL_HTTP_VERSION_2_0) return;
  std::lock_guard lock(client.mutex);
  if (client.multiplexed.size() == most) client.multiplexed.clear();
  client.multiplexed.insert(host.authority());
}

task<found_host> look_up(const client::state& client, const route& way) {
  found_host found;
  if (way.at.is_address() || client.settings.through.lead_to(way.at)) co_return found;
  try {
    found.addresses = co_await resolver::of_process().resolve(way.at.host);
  } catch (const error& thrown) {
    if (thrown.code() == errc::stopped) throw;
    found.failure = failed_attempt{.code = thrown.code(), .reason = thrown.what(), .again = true};
  }
  co_return found;
}

void set_addresses(const client::state& client, transfer& hop, const route& way,
                   const std::string& addresses) {
  if (addresses.empty()) return;
  bool is_past_proxies = client.settings.through.any();
  if (is_past_proxies && curl_easy_setopt(hop.handle(), CURLOPT_NOPROXY, "*") != CURLE_OK)
    throw std::bad_alloc();
  hop.addresses = with_line({}, "+" + way.at.authority() + ":" + addresses);
  curl_easy_setopt(hop.handle(), CURLOPT_RESOLVE, hop.addresses.get());
}

static bool is_redirect(const response_head& head) noexcept {
  constexpr std::array statuses{301, 302, 303, 307, 308};
  return std::ranges::find(statuses, head.status) != statuses.end() &&
         !head.value("location").empty();
}

// The location for errors. A text that is not a complete URL may have secrets anywhere, so it is
// not shown.
static std::string shown_location(const std::string& location) {
  constexpr std::size_t most = 200;
  if (scheme_of(location).empty()) return "a place";
  auto text = printable(without_secrets(location));
  return text.size() <= most ? text : text.substr(0, most) + "...";
}

// The target of a redirect. Empty if it is not allowed; then sets `reason`.
static std::optional<std::string> next_url(const client::state& client, const route& way,
                                           const std::string& location, std::string& reason) {
  auto next = redirected(way.url, location);
  auto most = client.settings.options.redirects;
  if (next.empty())
    reason =
        fmt::format("redirected to {}, which is no URL of http or https", shown_location(location));
  else if (way.redirects == most)
    reason = fmt::format("more than {} redirects", most);
  else if (way.at.scheme == "https" && origin(next).scheme != "https")
    reason = "redirected from https to " + without_secrets(next);
  else
    return next;
  return std::nullopt;
}

bool follows_redirect(const client::state& client, const request& request, const transfer& ended,
                      route& way, std::optional<failed_attempt>& refused) {
  if (!ended.succeeded()) return false;
  bool is_read = request.method() == "GET" || request.method() == "HEAD";
  if (!is_redirect(ended.head) || !is_read) {
    bool is_unauthorized = ended.head.status == 401 && way.is_own && client.token_for(way.at);
    return is_unauthorized && !std::exchange(way.token_was_refused, true);
  }
  std::string reason;
  auto next = next_url(client, way, std::string(ended.head.value("location")), reason);
  if (!next) {
    refused = failed_attempt{.code = status_code(ended.head.status), .reason = std::move(reason)};
    return false;
  }
  way.url = *std::move(next);
  way.at = origin(way.url);
  way.is_own = way.at == origin(request.url());
  ++way.redirects;
  return true;
}

void name_hop(const route& way, failed_attempt& failure) {
  if (way.redirects > 0) failure.reason += ", redirected to " + without_secrets(way.url);
}

}  // namespace lade::io::http
