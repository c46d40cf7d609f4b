// Makes any bytes the secrets of a request, line by line, and what follows them the words of its
// refusal, which show none of them.

#include "../../io/http/escapes.hpp"
#include "../../io/http/secrets.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

using namespace lade::io::http;

static std::string_view next_line(std::string_view& text) {
  auto line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

// What no part of a request ends at, and no mark of a hidden text is.
static std::string secret_of(std::string_view line) {
  std::string secret(line);
  std::erase_if(secret, [](char c) {
    return std::string_view("./?#@:&=;,% \t\r\\").find(c) != std::string_view::npos || c == 0;
  });
  return secret;
}

static std::string percent_escaped(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    bool is_ascii = byte < 0x80;
    if (is_ascii)
      escaped += {'%', "0123456789abcdef"[byte >> 4], "0123456789ABCDEF"[byte & 15]};
    else
      escaped += c;
  }
  return escaped;
}

// The text with a secret in some of its places, as it is and escaped.
static std::string with_secrets(std::string_view words, const std::vector<std::string>& secrets) {
  std::string text;
  for (char c : words) {
    auto& secret = secrets[static_cast<unsigned char>(c) % secrets.size()];
    if (c == '!')
      text += secret;
    else if (c == '?')
      text += percent_escaped(secret);
    else
      text += c;
  }
  return text;
}

static void check(const request_secrets& of, const std::vector<std::string>& secrets,
                  const std::string& text, bool was_cut) {
  constexpr std::size_t within_words = 6;
  auto shown = of.hidden_in(text, was_cut);
  auto said = unescape(shown).plain;
  for (auto& secret : secrets) {
    if (secret.size() < within_words) continue;
    if (shown.find(secret) != shown.npos || said.find(secret) != said.npos) std::abort();
    for (std::size_t bytes = 1; was_cut && bytes < secret.size(); ++bytes)
      if (shown.ends_with(secret.substr(0, bytes))) std::abort();
  }
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> secrets;
  for (int i = 0; i < 5; ++i) secrets.push_back(secret_of(next_line(text)));
  auto url = "https://user:" + secrets[0] + "@host/a?part=1&token=" + secrets[1];
  auto bearer = "Authorization: Bearer " + secrets[2];
  auto own = "X-Own-Token:" + secrets[3];
  curl_list headers(curl_slist_append(nullptr, bearer.c_str()));
  curl_slist_append(headers.get(), own.c_str());
  request_secrets of(url, headers.get(), "action=a&client_secret=" + secrets[4]);
  for (auto& words : {std::string(text), with_secrets(text, secrets)}) {
    check(of, secrets, words, false);
    check(of, secrets, words, true);
    for (auto& secret : secrets)
      check(of, secrets, words + secret.substr(0, secret.size() / 2), true);
  }
  return 0;
}
