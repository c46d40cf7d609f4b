#include "sigv4.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <ctime>
#include <iterator>
#include <new>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace lade::io::http {

static std::string hexadecimal(const unsigned char* bytes, std::size_t count) {
  std::string text;
  text.reserve(2 * count);
  for (std::size_t i = 0; i < count; ++i)
    fmt::format_to(std::back_inserter(text), "{:02x}", bytes[i]);
  return text;
}

std::string percent_encoded(std::string_view text, bool keeps_slashes) {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '-' || c == '.' || c == '_' || c == '~' || (keeps_slashes && c == '/');
    if (is_plain)
      encoded += c;
    else
      fmt::format_to(std::back_inserter(encoded), "%{:02X}", byte);
  }
  return encoded;
}

std::string sha256_text(std::string_view bytes) {
  std::array<unsigned char, 32> digest{};
  if (!EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr))
    throw std::bad_alloc();
  return hexadecimal(digest.data(), digest.size());
}

// Appends the bytes of 32 hexadecimal digits. Returns false for other texts.
static bool append_md5(std::string& to, std::string_view digits) {
  if (digits.size() != 32) return false;
  for (std::size_t i = 0; i < 32; i += 2) {
    unsigned byte = 0;
    auto [end, failure] = std::from_chars(digits.data() + i, digits.data() + i + 2, byte, 16);
    if (failure != std::errc() || end != digits.data() + i + 2) return false;
    to += static_cast<char>(byte);
  }
  return true;
}

std::string multipart_tag(std::span<const std::string> tags) {
  std::string sums;
  for (auto& tag : tags) {
    bool is_quoted = tag.size() >= 2 && tag.starts_with('"');
    if (!append_md5(sums, is_quoted ? std::string_view(tag).substr(1, tag.size() - 2) : tag))
      return {};
  }
  std::array<unsigned char, 16> digest{};
  if (!EVP_Digest(sums.data(), sums.size(), digest.data(), nullptr, EVP_md5(), nullptr)) return {};
  return fmt::format("{}-{}", hexadecimal(digest.data(), digest.size()), tags.size());
}

static std::array<unsigned char, 32> hmac(std::string_view with, std::string_view text) {
  std::array<unsigned char, 32> code{};
  if (!HMAC(EVP_sha256(), with.data(), static_cast<int>(with.size()),
            reinterpret_cast<const unsigned char*>(text.data()), text.size(), code.data(), nullptr))
    throw std::bad_alloc();
  return code;
}

static std::string_view view_of_key(const std::array<unsigned char, 32>& key) {
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

s3_signer::key s3_signer::day_key(const s3_credentials& as, const std::string& day) const {
  auto text = as.secret_key() + "/" + day;
  std::lock_guard lock(mutex_);
  if (kept_for_ == text) return kept_;
  auto of_day = hmac("AWS4" + as.secret_key(), day);
  auto of_region = hmac(view_of_key(of_day), region_);
  auto of_service = hmac(view_of_key(of_region), "s3");
  kept_ = hmac(view_of_key(of_service), "aws4_request");
  kept_for_ = std::move(text);
  return kept_;
}

// "20130524T000000Z"
static std::string time_text(std::chrono::sys_seconds now) {
  const std::time_t seconds = now.time_since_epoch().count();
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts)};
}

// The parts of a URL that a signature covers.
struct signed_url {
  std::string_view host;
  std::string_view path;
  std::string query;  // sorted, "key=" for keys without a value

  explicit signed_url(std::string_view url) {
    url.remove_prefix(url.find("://") + 3);
    auto question = std::min(url.find('?'), url.size());
    auto slash = std::min(url.find('/'), question);
    host = url.substr(0, slash);
    path = slash == question ? "/" : url.substr(slash, question - slash);
    sort_query(url.substr(std::min(question + 1, url.size())));
  }

 private:
  void sort_query(std::string_view text) {
    std::vector<std::string> parameters;
    while (!text.empty()) {
      auto parameter = text.substr(0, text.find('&'));
      text.remove_prefix(std::min(text.size(), parameter.size() + 1));
      bool has_value = parameter.find('=') != std::string_view::npos;
      parameters.push_back(std::string(parameter) + (has_value ? "" : "="));
    }
    std::ranges::sort(parameters);
    for (auto& each : parameters) query += (query.empty() ? "" : "&") + each;
  }
};

static std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

void s3_signer::sign(std::string_view method, std::string_view url, http::header_list& headers,
                     const s3_credentials& as, std::string_view body_hash,
                     std::chrono::sys_seconds now) const {
  auto time = time_text(now);
  auto day = time.substr(0, 8);
  headers.emplace_back("x-amz-content-sha256", body_hash);
  headers.emplace_back("x-amz-date", time);
  if (!as.session_token().empty()) headers.emplace_back("x-amz-security-token", as.session_token());

  const signed_url parts(url);
  http::header_list covered{{"host", std::string(parts.host)}};
  for (auto& [name, value] : headers) covered.emplace_back(lower(name), value);
  std::ranges::sort(covered);
  std::string lines;
  std::string names;
  for (auto& [name, value] : covered) {
    lines += fmt::format("{}:{}\n", name, value);
    names += (names.empty() ? "" : ";") + name;
  }
  auto canonical = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", method, parts.path, parts.query, lines,
                               names, body_hash);
  auto scope = day + "/" + region_ + "/s3/aws4_request";
  auto text = fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", time, scope, sha256_text(canonical));
  auto signature = hmac(view_of_key(day_key(as, day)), text);
  headers.emplace_back(
      "Authorization",
      fmt::format("AWS4-HMAC-SHA256 Credential={}/{},SignedHeaders={},Signature={}",
                  as.access_key(), scope, names, hexadecimal(signature.data(), signature.size())));
}

}  // namespace lade::io::http
