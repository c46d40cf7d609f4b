#include "credential_answers.hpp"

#include "xml.hpp"

#include <lade/error.hpp>
#include <lade/printable.hpp>
#include <lade/support/json_reader.hpp>

#include <chrono>
#include <string>
#include <utility>

namespace lade::io::http {

// Removes numbers and separators from the front of a text.
class time_parser {
 public:
  explicit time_parser(std::string_view text) noexcept : rest_(text) {}

  bool failed() const noexcept { return failed_; }
  bool at_end() const noexcept { return rest_.empty(); }

  int number(std::size_t digits, int least, int most) noexcept {
    int value = 0;
    failed_ = failed_ || rest_.size() < digits;
    for (std::size_t i = 0; i < digits && !failed_; ++i) {
      failed_ = rest_[i] < '0' || rest_[i] > '9';
      value = 10 * value + (rest_[i] - '0');
    }
    failed_ = failed_ || value < least || value > most;
    if (!failed_) rest_.remove_prefix(digits);
    return value;
  }

  bool take(char expected) noexcept {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void require(char expected) noexcept { failed_ = !take(expected) || failed_; }

  void skip_fraction() noexcept {
    if (!take('.')) return;
    number(1, 0, 9);
    auto rest = rest_.find_first_not_of("0123456789");
    rest_.remove_prefix(rest == rest_.npos ? rest_.size() : rest);
  }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

static std::chrono::minutes parse_zone(time_parser& text) noexcept {
  if (text.take('Z')) return {};
  bool is_behind = text.take('-');
  if (!is_behind) text.require('+');
  auto hours = text.number(2, 0, 23);
  text.take(':');
  auto minutes = text.number(2, 0, 59);
  auto offset = std::chrono::minutes(60 * hours + minutes);
  return is_behind ? -offset : offset;
}

std::optional<s3_credentials::time> parse_expiration(std::string_view text) noexcept {
  namespace chrono = std::chrono;
  time_parser parts(text);
  auto year = parts.number(4, 1970, 9999);
  parts.require('-');
  auto month = parts.number(2, 1, 12);
  parts.require('-');
  auto day = parts.number(2, 1, 31);
  parts.require('T');
  auto hours = chrono::hours(parts.number(2, 0, 23));
  parts.require(':');
  auto minutes = chrono::minutes(parts.number(2, 0, 59));
  parts.require(':');
  auto seconds = chrono::seconds(parts.number(2, 0, 60));
  parts.skip_fraction();
  auto zone = parse_zone(parts);
  auto date = chrono::year(year) / month / day;
  if (parts.failed() || !parts.at_end() || !date.ok()) return std::nullopt;
  const chrono::sys_seconds when = chrono::sys_days(date) + hours + minutes + seconds - zone;
  constexpr auto last = chrono::floor<chrono::seconds>(s3_credentials::time::max());
  return when < last ? s3_credentials::time(when) : s3_credentials::time::max();
}

// The texts of an answer.
class credential_answer {
 public:
  explicit credential_answer(std::string_view doing) noexcept : doing_(doing) {}

  std::string access_key, secret_key, session_token, expiration;

  s3_credentials credentials() && {
    if (access_key.empty() || secret_key.empty()) refuse("the answer has no keys");
    auto expires = s3_credentials::time::max();
    if (!expiration.empty()) {
      auto parsed = parse_expiration(expiration);
      if (!parsed) refuse("an expiration that is no time");
      expires = *parsed;
    }
    return {std::move(access_key), std::move(secret_key), std::move(session_token), expires};
  }

  [[noreturn]] void refuse(std::string_view reason) const {
    throw error(errc::invalid_data, doing_, reason);
  }

 private:
  std::string_view doing_;
};

// The text that holds a member of the JSON object; null for ignored members.
static std::string* member_of(credential_answer& answer, std::string_view name) noexcept {
  if (name == "AccessKeyId") return &answer.access_key;
  if (name == "SecretAccessKey") return &answer.secret_key;
  if (name == "Token") return &answer.session_token;
  return name == "Expiration" ? &answer.expiration : nullptr;
}

s3_credentials parse_credentials_json(std::string_view text, std::string_view doing) {
  using support::json_reader;
  credential_answer answer(doing);
  std::string code;
  try {
    json_reader json(text, "credentials");
    json.object([&](const std::string& name) {
      auto* kept = name == "Code" ? &code : member_of(answer, name);
      bool is_text = json.next() == json_reader::kind::string;
      if (kept && is_text)
        *kept = json.string();
      else
        json.skip();
    });
    json.end();
  } catch (const error&) {
    answer.refuse("the answer is no JSON object");
  }
  if (!code.empty() && code != "Success") answer.refuse("the service says " + printable(code));
  return std::move(answer).credentials();
}

s3_credentials parse_credentials_xml(std::string_view text, std::string_view doing) {
  credential_answer answer(doing);
  auto found = xml_text(text, doing).find("Credentials");
  if (!found) answer.refuse("the answer has no Credentials");
  answer.access_key = found->value("AccessKeyId");
  answer.secret_key = found->value("SecretAccessKey");
  answer.session_token = found->value("SessionToken");
  answer.expiration = found->value("Expiration");
  return std::move(answer).credentials();
}

}  // namespace lade::io::http
