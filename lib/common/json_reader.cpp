#include <lade/error.hpp>
#include <lade/support/json_reader.hpp>
#include <lade/support/utf8.hpp>

#include <algorithm>
#include <charconv>
#include <system_error>

#include <fmt/format.h>

namespace lade::support {

void json_reader::refuse(std::string_view why) const {
  auto where = (line_ > 0 ? fmt::format("line {}, byte ", line_) : "byte ");
  throw error(errc::invalid_data, "read " + std::string(name_),
              fmt::format("{}{}: {}", where, at_, why));
}

void json_reader::skip_space() noexcept {
  at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
}

bool json_reader::take(char wanted) noexcept {
  if (at_ >= text_.size() || text_[at_] != wanted) return false;
  ++at_;
  return true;
}

bool json_reader::take(std::string_view wanted) noexcept {
  if (text_.substr(at_, wanted.size()) != wanted) return false;
  at_ += wanted.size();
  return true;
}

json_reader::kind json_reader::next() {
  skip_space();
  switch (at_ < text_.size() ? text_[at_] : '\0') {
    case '{': return kind::object;
    case '[': return kind::array;
    case '"': return kind::string;
    case 't':
    case 'f': return kind::boolean;
    case 'n': return kind::null;
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9': return kind::number;
    default: refuse(at_ < text_.size() ? "expected a value" : "the text ends early");
  }
}

void json_reader::end() {
  skip_space();
  if (at_ < text_.size()) refuse("expected the end");
}

bool json_reader::enter(char begin, char end) {
  skip_space();
  if (!take(begin)) refuse(begin == '{' ? "expected an object" : "expected an array");
  if (++depth_ > max_depth) refuse(fmt::format("more than {} levels", max_depth));
  skip_space();
  if (!take(end)) return true;
  --depth_;
  return false;
}

bool json_reader::go_on(char end) {
  skip_space();
  if (take(',')) return true;
  if (!take(end)) refuse(fmt::format("expected ',' or '{}'", end));
  --depth_;
  return false;
}

std::string json_reader::member_name() {
  skip_space();
  auto name = string();
  skip_space();
  if (!take(':')) refuse("expected ':'");
  return name;
}

void json_reader::require_unique(std::vector<std::string> names) const {
  std::ranges::sort(names);
  auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) refuse(fmt::format("an object has the name \"{}\" twice", *twice));
}

bool json_reader::boolean() {
  skip_space();
  if (take("true")) return true;
  if (!take("false")) refuse("expected true or false");
  return false;
}

void json_reader::null() {
  skip_space();
  if (!take("null")) refuse("expected null");
}

std::string_view json_reader::skip() {
  auto type = next();
  auto begin = at_;
  switch (type) {
    case kind::object: object([this](const std::string&) { skip(); }); break;
    case kind::array: array([this] { skip(); }); break;
    case kind::string: string(); break;
    case kind::number: number_text(); break;
    case kind::boolean: boolean(); break;
    case kind::null: null(); break;
  }
  return text_.substr(begin, at_ - begin);
}

void json_reader::take_digits() {
  auto begin = at_;
  while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
  if (at_ == begin) refuse("expected a digit");
}

std::string_view json_reader::number_text() {
  skip_space();
  auto begin = at_;
  take('-');
  if (!take('0')) take_digits();
  if (take('.')) take_digits();
  if (take('e') || take('E')) {
    if (!take('+')) take('-');
    take_digits();
  }
  return text_.substr(begin, at_ - begin);
}

template <class T>
static bool parse_number(std::string_view text, T& value) noexcept {
  auto* end = text.data() + text.size();
  auto [stop, failure] = std::from_chars(text.data(), end, value);
  return failure == std::errc() && stop == end;
}

double json_reader::number() {
  double value = 0;
  if (!parse_number(number_text(), value)) refuse("a number that no double can hold");
  return value;
}

std::int64_t json_reader::integer() {
  std::int64_t value = 0;
  if (!parse_number(number_text(), value)) refuse("expected an integer of 64 bits");
  return value;
}

std::uint64_t json_reader::unsigned_integer() {
  std::uint64_t value = 0;
  if (!parse_number(number_text(), value)) refuse("expected an integer of 64 bits from 0 on");
  return value;
}

std::variant<std::int64_t, double> json_reader::any_number() {
  auto begin = at_;
  bool whole = number_text().find_first_of(".eE") == std::string_view::npos;
  at_ = begin;
  if (whole) return integer();
  return number();
}

char32_t json_reader::read_hex() {
  unsigned value = 0;
  auto digits = text_.substr(at_, 4);
  auto [stop, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (digits.size() < 4 || stop != digits.data() + 4) refuse("expected four hexadecimal digits");
  at_ += 4;
  return value;
}

// Reads an escape after its backslash. A character beyond 16 bits is a pair of surrogates.
void json_reader::read_escape(std::string& into) {
  constexpr std::string_view letters = "\"\\/bfnrt";
  constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
  if (!take('u')) {
    auto which = at_ < text_.size() ? letters.find(text_[at_]) : letters.npos;
    if (which == letters.npos) refuse("an escape that JSON does not have");
    into += meanings[which];
    ++at_;
    return;
  }
  auto code = read_hex();
  if (code >= 0xd800 && code < 0xdc00 && take("\\u")) {
    auto low = read_hex();
    if (low < 0xdc00 || low > 0xdfff) refuse("half of a pair of surrogates");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  } else if (code >= 0xd800 && code <= 0xdfff) {
    refuse("half of a pair of surrogates");
  }
  append_utf8(into, code);
}

// The number of leading bytes that are ASCII and need no escape in a string.
static std::size_t plain_json_bytes(std::string_view text) noexcept {
  auto is_plain = [](unsigned char c) { return c >= ' ' && c < 0x80 && c != '"' && c != '\\'; };
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is_plain) - text.begin());
}

std::string json_reader::string() {
  skip_space();
  if (!take('"')) refuse("expected a string");
  std::string value;
  for (;;) {
    auto rest = text_.substr(at_);
    auto plain = plain_json_bytes(rest);
    value += rest.substr(0, plain);
    at_ += plain;
    if (at_ >= text_.size()) refuse("the text ends early");
    if (take('"')) return value;
    if (take('\\')) {
      read_escape(value);
      continue;
    }
    auto length = utf8_length(text_.substr(at_));
    if (static_cast<unsigned char>(text_[at_]) < 0x20) refuse("a control character in a string");
    if (length == 0) refuse("a string that is not UTF-8");
    value += text_.substr(at_, length);
    at_ += length;
  }
}

}  // namespace lade::support
