#include "failures.hpp"

#include "ranges.hpp"
#include "secrets.hpp"

#include <lade/error.hpp>
#include <lade/io/http/error.hpp>
#include <lade/printable.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace lade::io::http {

std::string describe_request(std::string_view method, std::string_view url) {
  std::string text(method);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text + " " + without_secrets(url);
}

std::string longer_than(std::uint64_t most) {
  return fmt::format("the body is longer than max_bytes, {}", most);
}

static bool is_worth_repeating(CURLcode result) noexcept {
  constexpr std::array passing{
      CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT,   CURLE_RECV_ERROR,
      CURLE_SEND_ERROR,           CURLE_GOT_NOTHING,       CURLE_PARTIAL_FILE,
      CURLE_OPERATION_TIMEDOUT,   CURLE_SSL_CONNECT_ERROR, CURLE_HTTP2,
      CURLE_HTTP2_STREAM,         CURLE_SEND_FAIL_REWIND};
  return std::ranges::find(passing, result) != passing.end();
}

static bool is_worth_repeating(int status) noexcept {
  return status == 408 || status == 425 || status == 429 || status >= 500;
}

// Parses a date. Returns seconds since 1970. Years of 10,000 and more are valid.
static std::optional<std::int64_t> parse_date(std::string_view text) noexcept {
  std::array<char, 64> terminated{};
  if (text.empty() || text.size() >= terminated.size()) return std::nullopt;
  std::ranges::copy(text, terminated.begin());
  auto seconds = curl_getdate(terminated.data(), nullptr);
  if (seconds == -1) return std::nullopt;
  return seconds;
}

std::optional<std::chrono::seconds> retry_after(
    const response_head& head, std::chrono::system_clock::time_point now) noexcept {
  auto text = head.value("retry-after");
  std::uint32_t seconds = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (!text.empty() && failure == std::errc() && end == text.data() + text.size())
    return std::chrono::seconds(seconds);
  auto until = parse_date(text);
  if (!until) return std::nullopt;
  auto from = parse_date(head.value("date")).value_or(std::chrono::system_clock::to_time_t(now));
  constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
  return std::chrono::seconds(std::clamp(*until - from, std::int64_t{0}, most));
}

static std::string first_line(std::string_view text) {
  constexpr std::size_t most = 200;
  text = text.substr(0, text.find_first_of("\r\n"));
  return printable(text.substr(0, most)) + (text.size() > most ? "..." : "");
}

static std::string_view xml_element(std::string_view body, const std::string& name) {
  auto begin = body.find("<" + name + ">");
  if (begin == std::string_view::npos) return {};
  body.remove_prefix(begin + name.size() + 2);
  return body.substr(0, body.find("</"));
}

// The explanation in the body of a refusal: the code and message of an object store, else the first
// line. Empty for an HTML page, whose first line explains nothing.
static std::string explanation_of(std::string_view body) {
  auto message = xml_element(body, "Message");
  if (message.empty()) return body.starts_with('<') ? std::string() : first_line(body);
  return fmt::format("{}, {}", first_line(xml_element(body, "Code")), first_line(message));
}

failed_attempt changed_object() {
  return {.code = make_error_code(errc::changed),
          .reason = "the object has changed while it was read"};
}

std::optional<failed_attempt> refusal_of_entity(const response_head& head, std::string_view etag,
                                                std::optional<std::uint64_t> bytes) {
  auto refuse = [](std::string reason) {
    return failed_attempt{.code = make_error_code(errc::invalid_data), .reason = std::move(reason)};
  };
  auto found = head.value("etag");
  if (is_strong(etag) && found.empty()) return refuse("the response lacks the entity tag");
  if (is_strong(etag) && found != etag) return changed_object();
  auto total = object_bytes(head.headers);
  if (!bytes || !total || *total == *bytes) return std::nullopt;
  return refuse(
      fmt::format("the server states that the same entity has {} bytes and {}", *bytes, *total));
}

failed_attempt failure_of(const transfer& ended) {
  auto secrets = request_secrets::of(ended);
  if (!ended.succeeded()) {
    std::error_code code(ended.result(), curl_category());
    auto text = code.message();
    auto reason = first_line(secrets.hidden_in(std::string(ended.reason())));
    if (reason.find(text) != std::string::npos)
      text = std::move(reason);
    else if (!reason.empty())
      text += ": " + reason;
    return {.code = code, .reason = text, .again = is_worth_repeating(ended.result())};
  }
  auto code = status_code(ended.head.status);
  bool was_cut = ended.refused_bytes > ended.refusal.size();
  auto explanation = explanation_of(secrets.hidden_in(ended.refusal, was_cut));
  return {.code = code,
          .reason = code.message() + (explanation.empty() ? "" : ": " + explanation),
          .again = is_worth_repeating(ended.head.status),
          .retry_after = retry_after(ended.head, std::chrono::system_clock::now())};
}

bool is_renewed(const request& request, const failed_attempt& refusal, request::time start) {
  bool is_refusal = refusal.code == status_code(400) || refusal.code == status_code(401) ||
                    refusal.code == status_code(403);
  return is_refusal && request.renew && request.renew(refusal.reason, start);
}

}  // namespace lade::io::http
