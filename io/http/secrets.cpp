#include "secrets.hpp"

#include "checksums.hpp"
#include "escapes.hpp"

#include <lade/url.hpp>

#include <algorithm>
#include <array>
#include <cctype>

namespace lade::io::http {

static constexpr std::size_t least_within_words = 6;

// Removes the text up to the first byte of `ends`, and that byte. Returns the text before it.
static std::string_view take_until(std::string_view& text, std::string_view ends) {
  auto part = text.substr(0, text.find_first_of(ends));
  text.remove_prefix(std::min(text.size(), part.size() + 1));
  return part;
}

// Whether the values of a header are public and may be part of an error message.
static bool is_open(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 9> names{
      "accept",     "content-type",        "expect", "if-match", "range", "user-agent",
      "x-amz-date", "x-amz-checksum-mode", "host"};
  return std::ranges::any_of(names, [&](auto& each) { return equal_ignoring_case(each, name); });
}

static bool has_form(const curl_slist* headers) noexcept {
  for (; headers; headers = headers->next)
    if (equal_ignoring_case(headers->data, "content-type: application/x-www-form-urlencoded"))
      return true;
  return false;
}

request_secrets::request_secrets(std::string_view url, const curl_slist* headers,
                                 std::string_view form) {
  for (; headers; headers = headers->next) add_header(headers->data);
  add_url(url);
  add_form(form);
  sort();
}

void request_secrets::sort() {
  std::ranges::sort(texts_, [](auto& a, auto& b) { return a.size() > b.size(); });
}

request_secrets request_secrets::of(const transfer& active) {
  const char* url = nullptr;
  curl_easy_getinfo(active.handle(), CURLINFO_EFFECTIVE_URL, &url);
  auto form = has_form(active.headers.get()) ? active.outgoing.text() : std::string_view();
  request_secrets all(url ? url : "", active.headers.get(), form);
  for (std::string_view lines = active.authorizations; !lines.empty();)
    all.add_header(take_until(lines, "\n"));
  for (auto& proxy : active.proxy_urls) all.add_proxy(proxy);
  all.sort();
  return all;
}

void request_secrets::add(std::string_view secret) {
  if (secret.empty()) return;
  texts_.emplace_back(secret);
  auto plain = percent_decoded(secret);
  if (plain && *plain != secret && !plain->empty()) texts_.push_back(*plain);
}

void request_secrets::add_header(std::string_view line) {
  auto name = take_until(line, ":");
  auto value = without_blanks(line);
  if (is_open(name)) return;
  if (equal_ignoring_case(name, "authorization") ||
      equal_ignoring_case(name, "proxy-authorization"))
    add_authorization(value);
  if (equal_ignoring_case(name, "cookie")) add_named(value, ";");
  if (value.size() >= least_within_words) add(value);
}

// Decodes base64 (RFC 4648, section 4) up to the first character that is not base64.
static std::string decoded_base64(std::string_view text) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0;
  unsigned count = 0;
  for (char c : text) {
    auto digit = digits.find(c);
    if (digit == digits.npos) break;
    bits = (bits << 6 | static_cast<unsigned>(digit)) & 0xffff;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  return bytes;
}

// "Basic base64", "Bearer token", or "AWS4-HMAC-SHA256 Credential=id/date/..., SignedHeaders=...,
// Signature=...".
void request_secrets::add_authorization(std::string_view value) {
  auto scheme = take_until(value, " ");
  add(value);
  if (equal_ignoring_case(scheme, "basic")) {
    auto pair = decoded_base64(value);
    add(pair);
    std::string_view password = pair;
    add(take_until(password, ":"));
    add(password);
  }
  if (value.find("Signature=") != std::string_view::npos) add_named(value, ",");
}

void request_secrets::add_named(std::string_view list, std::string_view separator) {
  while (!list.empty()) {
    auto value = without_blanks(take_until(list, separator));
    auto name = take_until(value, "=");
    if (name == "SignedHeaders") continue;
    add(value);
    add(value.substr(0, value.find('/')));
  }
}

// Parses the URL as libcurl does; it sends no others.
void request_secrets::add_url(std::string_view url) {
  auto begin = url.find("://");
  if (begin == std::string_view::npos) return;
  url.remove_prefix(begin + 3);
  auto authority = url.substr(0, url.find_first_of("/?#"));
  if (auto end = authority.rfind('@'); end != std::string_view::npos)
    add_user(authority.substr(0, end));
  take_until(url, "?");
  add_parameters(url.substr(0, url.find('#')));
}

// Adds "name:password", percent-encoded as in a URL.
void request_secrets::add_user(std::string_view user) {
  add(user);
  add(base64(percent_decoded(user).value_or(std::string(user))));
  auto name = take_until(user, ":");
  add(name);
  add(user);
  add(base64(percent_decoded(name).value_or(std::string(name)) + ":"));
}

// Adds the user of "http://name:password@host:port", also without the scheme. The password may
// contain any byte.
void request_secrets::add_proxy(std::string_view proxy) {
  if (auto scheme = proxy.find("://"); scheme != proxy.npos) proxy.remove_prefix(scheme + 3);
  if (auto end = proxy.rfind('@'); end != proxy.npos) add_user(proxy.substr(0, end));
}

// Adds the values that without_secrets() hides in a URL.
void request_secrets::add_parameters(std::string_view query) {
  while (!query.empty()) {
    auto parameter = take_until(query, "&");
    auto shown = without_secrets("a://a?" + std::string(parameter));
    if (shown.ends_with(parameter)) continue;
    auto name = take_until(parameter, "=");
    add(parameter.empty() ? name : parameter);
  }
}

// Adds the secret values of a form. Most values are names of actions and roles, which explain a
// refusal.
void request_secrets::add_form(std::string_view form) {
  constexpr std::array<std::string_view, 6> kinds{"token", "secret",    "password",
                                                  "code",  "assertion", "key"};
  while (!form.empty()) {
    auto value = take_until(form, "&");
    std::string name(take_until(value, "="));
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    if (std::ranges::any_of(kinds, [&](auto each) { return name.find(each) != name.npos; }))
      add(value);
  }
}

static bool is_word_byte(char c) noexcept {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

static bool is_word(std::string_view text, std::size_t at, std::size_t bytes) noexcept {
  bool begins = at == 0 || !is_word_byte(text[at - 1]);
  bool ends = at + bytes == text.size() || !is_word_byte(text[at + bytes]);
  return begins && ends;
}

// Replaces a secret wherever the decoded text has it. After a replacement, the text is decoded
// again; the text before the mark decodes as before.
static void hide(std::string& text, const std::string& secret, reading* read) {
  for (std::size_t from = 0;;) {
    auto unescaped = read(text);
    auto at = unescaped.plain.find(secret, from);
    if (at == std::string::npos) return;
    from = at + 1;
    bool is_hidden =
        secret.size() >= least_within_words || is_word(unescaped.plain, at, secret.size());
    if (!is_hidden) continue;
    unescaped.replace(text, at, secret.size());
    from = at + redaction_mark.size();
  }
}

// Replaces the beginning of a secret at the end of a text.
static void hide_beginning(std::string& text, const std::string& secret, reading* read) {
  auto unescaped = read(text);
  for (auto bytes = std::min(unescaped.plain.size(), secret.size() - 1); bytes > 0; --bytes) {
    if (!unescaped.plain.ends_with(std::string_view(secret).substr(0, bytes))) continue;
    unescaped.replace(text, unescaped.plain.size() - bytes, bytes);
    return;
  }
}

// Replaces the user information of each URL.
static void hide_users(std::string& text) {
  for (std::size_t at = 0; (at = text.find("://", at)) != text.npos;) {
    at += 3;
    auto end = std::min(text.find_first_of(" \t\r\n\"'<>", at), text.size());
    auto host = std::string_view(text).substr(at, end - at).rfind('@');
    if (host != text.npos) text.replace(at, host, redaction_mark);
  }
}

std::string request_secrets::hidden_in(std::string text, bool was_cut) const {
  hide_users(text);
  if (was_cut) text.resize(text.size() - cut_escape_bytes(text));
  for (auto* read : {verbatim, unescape}) {
    for (auto& each : texts_) hide(text, each, read);
    if (!was_cut) continue;
    for (auto& each : texts_) hide_beginning(text, each, read);
  }
  return text;
}

}  // namespace lade::io::http
