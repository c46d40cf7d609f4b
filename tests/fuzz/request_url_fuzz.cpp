// Reads any bytes as a URL of the web, a host, an object of S3 and the tags of its parts, line by
// line: where requests go, and what is signed.

#include "../../io/http/origin.hpp"
#include "../../io/http/s3_state.hpp"
#include "../../io/http/sigv4.hpp"

#include <lade/error.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

using namespace lade::io::http;

static std::string next_line(std::string_view& text) {
  auto line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return std::string(line);
}

template <class F>
static auto if_good(F make) -> std::optional<decltype(make())> {
  try {
    return make();
  } catch (const lade::error& refused) {
    if (refused.code() != lade::errc::invalid_argument) std::abort();
    return std::nullopt;
  }
}

// The quick way to read a URL sees what libcurl sees, to which user information leads. Neither
// takes a part of a text for the whole.
static void check_origin(const std::string& text) {
  auto authority = text.substr(0, text.find_first_of("/?#"));
  if (authority.find('@') != authority.npos) return;
  auto quick = if_good([&] { return origin("http://" + authority + "/"); });
  auto full = if_good([&] { return origin("http://user@" + authority + "/"); });
  if (quick != full) std::abort();
  if (quick && (quick->host.empty() || quick->port.empty())) std::abort();
  bool is_whole = text.find('\0') == text.npos;
  if (!is_whole && if_good([&] { return origin("http://" + text); })) std::abort();
}

static void check_host(const std::string& given) {
  auto known = if_good([&] { return known_host(given); });
  if (!known) return;
  if (known->find_first_of("/\\?#@% ") != known->npos) std::abort();
  if (if_good([&] { return known_host(*known); }) != known) std::abort();
}

static void sign(const std::string& url) {
  const s3_signer signer("us-east-1");
  header_list headers;
  signer.sign("GET", url, headers, s3_credentials("key", "secret"), "UNSIGNED-PAYLOAD",
              std::chrono::sys_seconds(std::chrono::seconds(1'700'000'000)));
  for (auto& [name, value] : headers)
    if (value.find("secret") != value.npos || value.find('\n') != value.npos) std::abort();
}

// A request for an object goes to its store, whatever the object is called.
static void check_object(const std::string& url, const std::string& query, bool in_path) {
  auto name = if_good([&] { return s3_name(url); });
  if (!name) return;
  const s3_location place("us-east-1", "https://store.example:9000/s3/", in_path);
  auto http_url = place.http_url(*name, percent_encoded(query, false));
  sign(http_url);
  auto where = if_good([&] { return origin(http_url); });
  if (!where) return;
  auto path = http_url.substr(0, http_url.find('?'));
  if (!path.ends_with("/" + percent_encoded(name->key, true))) std::abort();
  if (lade::percent_decoded(percent_encoded(name->key, true)) != name->key) std::abort();
  if (where->port != "9000" || !where->host.ends_with("store.example")) std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view lines(reinterpret_cast<const char*>(data), size);
  auto first = next_line(lines);
  auto second = next_line(lines);
  check_origin(first);
  check_host(first);
  (void)if_good([&] { return origin(first); });
  auto next = redirected(first, second);
  if (!next.empty() && !if_good([&] { return origin(next); })) std::abort();
  check_object("s3://" + first, second, true);
  check_object("s3://" + first, second, false);
  const std::array tags{first, second};
  auto tag = multipart_tag(tags);
  if (!tag.empty() && (tag.size() != 34 || !tag.ends_with("-2"))) std::abort();
  return 0;
}
