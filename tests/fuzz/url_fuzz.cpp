// Reads any bytes as a name that may be a URL, and puts the lines of them into the places of a URL,
// some as secrets.

#include <lade/error.hpp>
#include <lade/io/store.hpp>
#include <lade/printable.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

using namespace lade;

static constexpr char mark = 'Q';  // stands in secrets, and nowhere else

static std::string_view next_line(std::string_view& text) {
  auto line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

// A part of a URL that is no secret.
static std::string open_part(std::string_view line, std::string_view without = "") {
  std::string part(line);
  std::erase_if(part, [&](char c) { return c == mark || without.find(c) != without.npos; });
  return part;
}

// A part that is nothing but marks, and the bytes that may be taken for its end.
static std::string secret_part(std::string_view line, std::string_view without = "") {
  auto part = open_part(line, without);
  for (auto& c : part)
    if (std::string_view("/?#@:&=;%+. ").find(c) == std::string_view::npos) c = mark;
  return part;
}

// Parameters whose values name objects.
static bool is_shown(std::string_view query) {
  auto last = query.substr(query.rfind('&') + 1);
  for (auto* name : {"delimiter", "encoding-type", "prefix", "start-after", "uploadId", "uploads",
                     "versionId", "fetch-owner"})
    if (last == name) return true;
  return false;
}

static void check_secrets(std::string_view lines) {
  auto scheme = open_part(next_line(lines), "/?#:@");
  auto user = open_part(next_line(lines), "/?#") + ":" + secret_part(next_line(lines)) + "@";
  auto host_and_path = open_part(next_line(lines), "#");
  auto name = open_part(next_line(lines), "#");
  auto value = secret_part(next_line(lines), "&");
  auto fragment = secret_part(next_line(lines));
  if (is_shown(name) || value.starts_with(".../")) value = "";  // the latter was hidden before
  for (auto& with : {std::string(), user}) {
    auto url = scheme + "://" + with + host_and_path + "?" + name + "=" + value + "#" + fragment;
    if (without_secrets(url).find(mark) != std::string::npos) std::abort();
  }
}

// Signed in another way, a URL is the same.
static void check_signature(const std::string& url) {
  auto plain = without_signature(url);
  if (plain.size() > url.size()) std::abort();
  if (plain != url || url.find("X-Amz-") != url.npos || url.find('#') != url.npos) return;
  bool has_query = url.find('?') != url.npos;
  auto is_signed = url + (has_query ? "&" : "?") +
                   "X-Amz-Credential=a&X-Amz-Date=b&X-Amz-Expires=1&X-Amz-Signature=c";
  if (without_signature(is_signed) != url) std::abort();
}

static void check_escapes(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    escaped += {'%', "0123456789ABCDEF"[byte >> 4], "0123456789abcdef"[byte & 15]};
  }
  if (percent_decoded(escaped) != text) std::abort();
  auto decoded = percent_decoded(text);
  if (decoded && decoded->size() > text.size()) std::abort();
  if (decoded && text.find('%') == text.npos && *decoded != text) std::abort();
  if (text.find('\0') != text.npos) return;  // no path has it
  if (io::local_path("file://localhost/" + escaped) != "/" + std::string(text)) std::abort();
}

// What a person is shown moves no cursor, and stays what it is.
static void check_shown(std::string_view text) {
  auto shown = printable(text);
  for (char c : shown)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) std::abort();
  if (printable(shown) != shown) std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (!text.starts_with(scheme_of(text))) std::abort();
  check_shown(without_secrets(text));
  check_signature(text);
  check_escapes(text);
  check_secrets(text);
  try {
    auto path = io::local_path(text);
    if (scheme_of(text) != "file" && path != text) std::abort();
  } catch (const error& refused) {
    auto known = "open " + printable(without_secrets(text)) + ": ";
    if (refused.code() != errc::invalid_argument) std::abort();
    if (!std::string_view(refused.what()).starts_with(known)) std::abort();
  }
  return 0;
}
